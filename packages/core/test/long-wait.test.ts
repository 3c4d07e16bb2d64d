import { expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskStore } from "../src/index.ts";
import { startEngine } from "./support/engine.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { accepted, question } from "./support/questions.ts";
import { countCalls, spiedStore, withLostHints } from "./support/spied-store.ts";

const hourMs = 60 * 60_000;

/** An engine with a handler that waits for a person, and what its store is asked meanwhile. */
async function waitingHandler(store: TaskStore) {
  vi.useFakeTimers();
  const spied = spiedStore(store);
  const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
  const { taskId } = await engine.lifecycle.createTask();
  const asking = engine.lifecycle.handle(taskId).requestInput({ size: question() });
  await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
  spied.take();
  return { engine, taskId, asking, spied };
}

test("a question that is open for an hour costs a store that watches one read in half a minute, beside the renewals", async () => {
  const { spied, engine, taskId, asking } = await waitingHandler(withLostHints(new MemoryTaskStore()));
  await vi.advanceTimersByTimeAsync(hourMs);
  const first = countCalls(spied.take());
  expect(first["get"]).toBeLessThan(420);
  await vi.advanceTimersByTimeAsync(hourMs);
  // Every half minute for the question, every minute by the heartbeat.
  expect(countCalls(spied.take())).toEqual({ renew: 360, get: 180 });
  await engine.lifecycle.updateTask(taskId, { size: accepted() });
  await asking;
});

test.each([
  [30_000, 1_000],
  [10 * 60_000, 10_000],
  [10 * hourMs, 30_000],
])(
  "an answer by another engine after %i ms whose hint was lost is there after at most %i ms more",
  async (waitedMs, moreMs) => {
    const store = withLostHints(new MemoryTaskStore());
    const { taskId, asking } = await waitingHandler(store);
    const other = startEngine({ store });
    await vi.advanceTimersByTimeAsync(waitedMs);
    const heard = vi.fn<(value: unknown) => void>();
    void asking.then(heard);
    await other.lifecycle.updateTask(taskId, { size: accepted() });
    await vi.advanceTimersByTimeAsync(moreMs);
    expect(heard).toHaveBeenCalledOnce();
  },
);

test("whoever begins to wait is looked for at once again, beside one that has waited for long", async () => {
  const store = withLostHints(new MemoryTaskStore());
  const { engine, taskId, asking } = await waitingHandler(store);
  const other = startEngine({ store });
  await vi.advanceTimersByTimeAsync(10 * hourMs);
  const heard = vi.fn<(value: unknown) => void>();
  void engine.lifecycle.waitForChange(taskId, { timeoutMs: 25_000 }).then(heard);
  await vi.advanceTimersByTimeAsync(100);
  await other.lifecycle.cancelTask(taskId);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(heard).toHaveBeenCalledOnce();
  await expect(asking).rejects.toMatchObject({ code: "cancelled" });
});

test("a store that does not watch is looked at every second, however long it takes: nothing else tells of an answer", async () => {
  const { spied, engine, taskId, asking } = await waitingHandler(fiveMethods(new MemoryTaskStore()));
  await vi.advanceTimersByTimeAsync(hourMs);
  expect(countCalls(spied.take())["get"]).toBeGreaterThan(3_600);
  await engine.lifecycle.updateTask(taskId, { size: accepted() });
  await asking;
});
