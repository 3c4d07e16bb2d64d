import type { TaskRecord } from "@longjobs/core";
import type { RedisTaskStore } from "../../src/index.ts";
import { record } from "./records.ts";

/** Ids that a careless key would come apart at. */
export const strangeIds = [
  "",
  "plain",
  "{7}",
  "a}{b",
  ":t:",
  "*",
  "a b\r\nc",
  "nul\u0000",
  "\ud800",
  '"quoted"',
  "@born",
  "__proto__",
  "x".repeat(300),
] as const;

/** Every call of the contract, in every manner that leads to other keys or arguments, on strange ids and tools. */
export async function exercise(store: RedisTaskStore): Promise<void> {
  const lease = { owner: "creator", token: "token", durationMs: 60_000 };
  for (const taskId of strangeIds) {
    const work = { tool: taskId };
    const created = record(taskId, { work, lease, ttlMs: 60_000 });
    await store.create(created);
    await store.get(taskId);
    await inTurn(store, created, [
      { statusMessage: "patched" },
      { statusMessage: undefined, progress: { done: 1 } },
      { ttlMs: 90_000 },
      { ttlMs: null },
      { status: "input_required" },
      { lease: undefined },
      { cancelRequestedAt: "2026-01-01T00:00:00.000Z" },
      { cancelRequestedAt: undefined, work: { tool: `other ${taskId}` } },
      { work: undefined },
      { kind: "transfer", lease },
    ]);
    await store.renew([{ taskId, token: "token" }], 1_000);
  }
  for (const taskId of strangeIds) await store.create(record(`free ${taskId}`, { work: { tool: taskId } }));
  const claimed = await store.claim("claimer", 60_000, { limit: 4, tools: [...strangeIds] });
  await store.claim("claimer", 60_000, { limit: 100, taskIds: strangeIds.map((taskId) => `free ${taskId}`) });
  await store.claim("claimer", 60_000, { limit: 100 });
  await store.renew(
    claimed.map(({ taskId, lease: held }) => ({ taskId, token: held?.token ?? "" })),
    60_000,
  );
  for (const { taskId, version } of claimed) await store.update(taskId, { status: "completed" }, version);
  await store.create(record("terminal", { status: "failed", ttlMs: 0 }));
  await store.sweep();
}

/** Watches, on a store that hears of nothing, until each task was looked at. */
export async function exerciseLooks(store: RedisTaskStore): Promise<void> {
  await Promise.all(
    strangeIds.map(async (taskId) => {
      let looked = (): void => undefined;
      const once = new Promise<void>((resolve) => {
        looked = resolve;
      });
      const end = await store.watch(taskId, looked);
      await once;
      await end();
    }),
  );
}

async function inTurn(
  store: RedisTaskStore,
  { taskId, version }: TaskRecord,
  patches: readonly Parameters<RedisTaskStore["update"]>[1][],
): Promise<void> {
  for (const [step, patch] of patches.entries()) await store.update(taskId, patch, version + step);
}
