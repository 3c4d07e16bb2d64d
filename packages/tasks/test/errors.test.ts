import { LongJobsError, longJobsErrorCodes, type LongJobsErrorCode } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { jsonRpcError, toJsonRpcError } from "../src/json-rpc-error.ts";
import { errorOf, HttpDoor } from "./support/http-door.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { gatedTool, greeter } from "./support/tools.ts";

/** The codes that a client can mend. Everything else is a fault of the server. */
const invalidParams: ReadonlySet<LongJobsErrorCode> = new Set([
  "unknown_task",
  "invalid_input_response",
  "invalid_json",
  "record_too_large",
  "idempotency_conflict",
  "unknown_transfer",
  "offset_mismatch",
  "chunk_too_large",
  "size_mismatch",
  "checksum_mismatch",
  "invalid_base64",
  "path_not_allowed",
  "target_exists",
  "file_too_large",
  "not_active",
  "invalid_request",
]);

const secret = "/var/lib/longjobs/tasks/log.0001: EACCES for user db_admin@10.0.0.7";

describe("each code has a JSON-RPC code: a fault of the server is never told as one of the client", () => {
  test.each(longJobsErrorCodes.map((code) => [code]))("%s", (code) => {
    const told = toJsonRpcError(new LongJobsError(code, secret, { retryable: true, partial: { secret } }));
    if (invalidParams.has(code)) {
      expect(told).toMatchObject({ code: -32_602, message: secret, data: { code } });
    } else {
      expect(told).toMatchObject({ code: -32_603, data: { code, retryable: true } });
      expect(JSON.stringify([told.message, told.data])).not.toContain(secret);
    }
  });

  test("a code of an author's own is a fault of the server", () => {
    expect(toJsonRpcError(new LongJobsError("city_unknown", secret)).code).toBe(-32_603);
  });

  test.each([
    ["an Error", new Error(secret)],
    ["an Error that a driver numbered", Object.assign(new Error(secret), { code: 11_000 })],
    ["a system error", Object.assign(new Error(secret), { code: "EACCES", path: secret })],
    ["text", secret],
    ["undefined", undefined],
    ["null", null],
  ])("%s is masked", (_name, error) => {
    const told = toJsonRpcError(error);
    expect({ ...told, message: told.message }).toEqual({
      code: -32_603,
      message: "The server could not do this.",
    });
  });

  test("an error that was made for the client goes out as it is", () => {
    const error = jsonRpcError(-32_050, "Pay first", { price: 3 });
    expect(toJsonRpcError(error)).toBe(error);
  });
});

describe("no message of a store reaches a client, whatever it throws", () => {
  const faults = [
    ["an Error", () => new Error(secret)],
    ["an Error with a number", () => Object.assign(new Error(secret), { code: 14, data: { secret } })],
    ["store_unavailable", () => new LongJobsError("store_unavailable", secret, { cause: new Error(secret) })],
    ["record_corrupt", () => new LongJobsError("record_corrupt", secret, { partial: { secret } })],
    ["no_space", () => new LongJobsError("no_space", secret)],
    ["text", () => secret as unknown as Error],
    ["undefined", () => undefined as unknown as Error],
  ] as const;

  test.for(faults)("get, update and cancel: %s", async ([, fault]) => {
    const started = startTasks();
    greeter(started.tasks);
    const http = new HttpDoor(started.tasks);
    const taskId = await http.startTask("greet");
    await http.until(taskId, "input_required");
    const thrown = fault();
    started.store.before = () => {
      throw thrown;
    };
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const error = errorOf(await http.send(method, { taskId, inputResponses: {} }));
      expect(error.code).toBe(-32_603);
      expect(JSON.stringify(error)).not.toContain("longjobs/tasks");
    }
    const reported = takeErrors(started);
    expect(reported.length).toBeGreaterThanOrEqual(3);
    expect(new Set(reported)).toEqual(new Set([thrown]));
    started.store.before = () => undefined;
    await http.cancel(taskId);
    await http.until(taskId, "cancelled");
    takeErrors(started);
  });

  test.for(faults)("tools/call: %s", async ([, fault]) => {
    const started = startTasks();
    gatedTool(started.tasks, "work");
    const thrown = fault();
    started.store.before = () => {
      throw thrown;
    };
    const error = errorOf(await new HttpDoor(started.tasks).send("tools/call", { name: "work" }));
    expect(error.code).toBe(-32_603);
    expect(JSON.stringify(error)).not.toContain("longjobs/tasks");
    expect(takeErrors(started)).toEqual([thrown]);
  });
});

test("a coded fault of the store tells its code and whether to try again", async () => {
  const started = startTasks();
  gatedTool(started.tasks, "work");
  started.store.before = () => {
    throw new LongJobsError("store_unavailable", secret, { retryable: true });
  };
  const error = errorOf(await new HttpDoor(started.tasks).send("tools/call", { name: "work" }));
  expect(error).toEqual({
    code: -32_603,
    message: "The server could not do this (store_unavailable).",
    data: { code: "store_unavailable", retryable: true },
  });
  takeErrors(started);
});

test("a terminal write that the store refuses is reported and repeated until it stands", async () => {
  const started = startTasks();
  const tool = gatedTool(started.tasks, "work");
  const http = new HttpDoor(started.tasks);
  const taskId = await http.startTask("work");
  let refusals = 0;
  started.store.before = (method) => {
    if (method !== "update" || (refusals += 1) > 2) return;
    throw new Error(secret);
  };
  tool.gate.open();
  await http.until(taskId, "completed");
  expect(takeErrors(started)).toHaveLength(2);
});

test("a call after close() is a coded error", async () => {
  const started = startTasks();
  gatedTool(started.tasks, "work");
  await started.tasks.close();
  const http = new HttpDoor(started.tasks);
  for (const [method, params] of [
    ["tools/call", { name: "work" }],
    ["tasks/get", { taskId: "t" }],
  ] as const) {
    expect(errorOf(await http.send(method, params))).toMatchObject({
      code: -32_603,
      data: { code: "store_closed" },
    });
  }
  takeErrors(started);
});
