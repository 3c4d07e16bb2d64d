// Compiled by `tsc -p test/tsconfig.json`, never run: what must compile, and what must not.
import { expectTypeOf } from "vitest";

import {
  canLease,
  isLongJobsError,
  LongJobsError,
  MemoryTaskStore,
  TaskLifecycle,
  type DetailedTask,
  type InputResponse,
  type JsonObject,
  type LongJobsErrorCode,
  type TaskError,
  type TaskHandle,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
} from "../src/index.ts";

declare const task: DetailedTask;
declare const handle: TaskHandle;
declare const record: TaskRecord;
declare const caught: unknown;
const question = { method: "roots/list" };

export function narrowing(): void {
  if (task.status === "completed") expectTypeOf(task.result).toEqualTypeOf<JsonObject>();
  if (task.status === "failed") expectTypeOf(task.error).toEqualTypeOf<TaskError>();
  if (task.status === "input_required") expectTypeOf(task.inputRequests).toBeObject();
  // @ts-expect-error -- a payload belongs to its status
  expectTypeOf(task.result).toBeAny();
  // @ts-expect-error -- internal fields are not in the view
  expectTypeOf(task.lease).toBeAny();
  if (isLongJobsError(caught, "expired")) expectTypeOf(caught).toEqualTypeOf<LongJobsError>();
  expectTypeOf<"lease_lost">().toExtend<LongJobsErrorCode>();
}

export async function capabilities(store: TaskStore): Promise<void> {
  // @ts-expect-error -- a store need not lease
  await store.claim("owner", 30_000, { limit: 1 });
  if (!canLease(store)) return;
  expectTypeOf(await store.claim("owner", 30_000, { limit: 1, tools: ["t"] })).toEqualTypeOf<TaskRecord[]>();
  expectTypeOf(await store.renew([{ taskId: "id", token: "t" }], 30_000)).toEqualTypeOf<string[]>();
  // @ts-expect-error -- how many must be said
  await store.claim("owner", 30_000, {});
}

export async function answers(): Promise<void> {
  const given = await handle.requestInput({ size: question, colour: question });
  expectTypeOf(given.size).toEqualTypeOf<InputResponse>();
  expectTypeOf(given.colour).toEqualTypeOf<InputResponse>();
  // @ts-expect-error -- only the keys that were asked are answered
  expectTypeOf(given.weight).toBeAny();
  // @ts-expect-error -- a question has a method
  await handle.requestInput({ size: { params: {} } });
}

export async function calls(lifecycle: TaskLifecycle): Promise<void> {
  expectTypeOf(new LongJobsError("a_code_of_my_own", "x")).toExtend<Error>();
  await lifecycle.createTask({ retentionMs: null, scope: "ann", work: { tool: "t" } });
  await lifecycle.getTask("id", { scope: undefined });
  await handle.progress({ done: 1 });
  // @ts-expect-error -- JSON-RPC errors have a numeric code
  await handle.fail({ code: "x", message: "y" });
  // @ts-expect-error -- a Date is no JSON
  await handle.saveCheckpoint(new Date());
  // @ts-expect-error -- a result is an object
  await handle.complete("done");
  // @ts-expect-error -- an engine needs a store
  expectTypeOf(new TaskLifecycle({})).toBeObject();
}

export function contract(): void {
  expectTypeOf<MemoryTaskStore>().toExtend<TaskStore>();
  const patch: TaskPatch = { lease: undefined, status: "completed" };
  expectTypeOf(patch).toExtend<TaskPatch>();
  // @ts-expect-error -- the version belongs to the store
  const wrong: TaskPatch = { version: 3 };
  expectTypeOf(wrong).toExtend<TaskPatch>();
  // @ts-expect-error -- a record is read-only
  record.status = "completed";
}
