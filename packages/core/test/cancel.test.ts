import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskHandle } from "../src/index.ts";
import { startEngine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { leaveCancelIntent, orphanTask } from "./support/orphan.ts";
import { accepted, question } from "./support/questions.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { withLostHints } from "./support/spied-store.ts";
import { gate } from "./support/turns.ts";

/** Counts how often the signal of a task fires. */
function countAborts({ signal }: TaskHandle): () => number {
  let fired = 0;
  signal.addEventListener("abort", () => {
    fired += 1;
  });
  return () => fired;
}

describe("tasks/cancel of a task that is worked on", () => {
  test("writes the intent, acknowledges, and aborts the signal with the reason cancelled", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    await lifecycle.cancelTask(taskId);
    expect(task.signal.reason).toMatchObject({ code: "cancelled" });
    expect(await store.get(taskId)).toMatchObject({
      status: "working",
      cancelRequestedAt: expect.any(String),
    });
  });

  test("50 times is one write and one signal (P13)", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const fired = countAborts(lifecycle.handle(taskId));
    const before = await store.get(taskId);
    await Promise.all(Array.from({ length: 50 }, () => lifecycle.cancelTask(taskId)));
    for (let again = 0; again < 5; again += 1) await lifecycle.cancelTask(taskId);
    expect(fired()).toBe(1);
    expect((await store.get(taskId))?.version).toBe((before?.version ?? 0) + 1);
  });

  test("withdraws open questions in the same write: the waiting handler hears cancelled, a late answer is ignored", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const asking = lifecycle.handle(taskId).requestInput({ a: question(), b: question() });
    await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
    await lifecycle.updateTask(taskId, { a: accepted() });
    await lifecycle.cancelTask(taskId);
    expect(await codeOf(asking)).toBe("cancelled");
    const record = await store.get(taskId);
    expect(record).toMatchObject({
      status: "working",
      inputs: { a: { state: "answered" }, b: { state: "withdrawn" } },
    });
    await lifecycle.updateTask(taskId, { b: accepted() });
    expect(await store.get(taskId)).toBe(record);
  });

  test("a handler that finishes first keeps its result (P14)", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const working = gate();
    const running = lifecycle.run(lifecycle.handle(taskId), async () => {
      await working.opened;
      return { content: [] };
    });
    await lifecycle.cancelTask(taskId);
    expect(await lifecycle.getTask(taskId), "acknowledged at once").toMatchObject({ status: "working" });
    working.open();
    expect(await running).toMatchObject({ status: "completed" });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed", result: { content: [] } });
  });

  test("a handler that stops, with whatever error, leaves it cancelled", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const running = lifecycle.run(lifecycle.handle(taskId), async ({ signal }) => {
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve);
      });
      throw new Error("cleaning up failed, too");
    });
    await lifecycle.cancelTask(taskId);
    expect(await running).toEqual({ status: "cancelled" });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
  });
});

// CASES part 2, engine: "two instances" and "cancel lost".
describe("two engines on one store", () => {
  test("A parks, B hears the answer, A resolves", async () => {
    const store = new MemoryTaskStore();
    const a = startEngine({ store });
    const b = startEngine({ store });
    const { taskId } = await a.lifecycle.createTask();
    const asking = a.lifecycle.handle(taskId).requestInput({ size: question() });
    await vi.waitFor(async () =>
      expect(await b.lifecycle.getTask(taskId)).toMatchObject({ status: "input_required" }),
    );
    await b.lifecycle.updateTask(taskId, { size: accepted({ n: 1 }) });
    expect(await asking).toEqual({ size: accepted({ n: 1 }) });
  });

  test.each(["with hints", "without hints"])(
    "B cancels, A's signal fires, %s of the store",
    async (hints) => {
      vi.useFakeTimers();
      const inner = new MemoryTaskStore();
      const store = hints === "with hints" ? inner : fiveMethods(inner);
      const a = startEngine({ store, leaseMs: 3_000 });
      const b = startEngine({ store });
      const { taskId } = await a.lifecycle.createTask();
      const task = a.lifecycle.handle(taskId);
      await b.lifecycle.cancelTask(taskId);
      await vi.advanceTimersByTimeAsync(hints === "with hints" ? 0 : 1_000);
      expect(task.signal.reason).toMatchObject({ code: "cancelled" });
    },
  );

  test("A parks and B answers on a store without hints: A resolves within the poll interval", async () => {
    vi.useFakeTimers();
    const store = fiveMethods(new MemoryTaskStore());
    const a = startEngine({ store, waitPollMs: 500 });
    const b = startEngine({ store });
    const { taskId } = await a.lifecycle.createTask();
    let answers: object | undefined;
    const asking = a.lifecycle.handle(taskId).requestInput({ size: question() });
    void asking.then((given) => {
      answers = given;
    });
    await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
    await b.lifecycle.updateTask(taskId, { size: accepted() });
    await vi.advanceTimersByTimeAsync(500);
    expect(answers).toEqual({ size: accepted() });
  });
});

describe("a task whose owner is gone", () => {
  test("is cancelled at once when somebody cancels it (P13)", async () => {
    const { store, taskId } = await orphanTask();
    const { lifecycle } = startEngine({ store });
    await lifecycle.cancelTask(taskId);
    expect(await store.get(taskId)).toMatchObject({
      status: "cancelled",
      cancelRequestedAt: expect.any(String),
    });
  });

  test("is cancelled at once also when it waits for an answer", async () => {
    const { store, taskId } = await orphanTask(async (task, left) => {
      void task.requestInput({ a: question() });
      await vi.waitFor(async () => expect((await left.get(task.taskId))?.status).toBe("input_required"));
    });
    const { lifecycle } = startEngine({ store });
    await lifecycle.cancelTask(taskId);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
    expect((await store.get(taskId))?.inputs).toBeUndefined();
  });

  test("ends as cancelled, not as interrupted, when its cancel was asked for before its owner died", async () => {
    const orphan = await orphanTask();
    const cancelRequestedAt = await leaveCancelIntent(orphan);
    const { lifecycle } = startEngine({ store: orphan.store });
    expect(await lifecycle.endIfOrphan(orphan.taskId)).toMatchObject({ status: "cancelled" });
    expect(await orphan.store.get(orphan.taskId)).toMatchObject({ cancelRequestedAt });
  });

  test("carries the intent to cancel to a later acquirer, whose signal is aborted from the start", async () => {
    const orphan = await orphanTask();
    await leaveCancelIntent(orphan);
    const { lifecycle } = startEngine({ store: orphan.store });
    const task = await lifecycle.acquire(orphan.taskId);
    expect(task.signal.reason).toMatchObject({ code: "cancelled" });
    await task.cancelled();
    expect(await lifecycle.getTask(orphan.taskId)).toMatchObject({ status: "cancelled" });
  });
});

describe("cancelTask at once, as revision 2025-11-25 wants it", () => {
  test("the task is cancelled when it resolves, the work is told, and a late result is dropped", async () => {
    const { lifecycle, store } = startEngine();
    const late = gate();
    const task = lifecycle.begin();
    await task.promote();
    const running = lifecycle.run(task, async () => {
      await late.opened;
      return { content: [] };
    });
    await lifecycle.cancelTask(task.taskId, { atOnce: true });
    const record = await store.get(task.taskId);
    expect(record).toMatchObject({ status: "cancelled", cancelRequestedAt: expect.any(String) });
    expect(record?.lease).toBeUndefined();
    expect(task.signal.reason).toMatchObject({ code: "cancelled" });
    late.open();
    await running;
    expect(await store.get(task.taskId)).toBe(record);
  });

  test("of a finished task it changes nothing", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    await lifecycle.handle(taskId).complete({ content: [] });
    const record = await store.get(taskId);
    await lifecycle.cancelTask(taskId, { atOnce: true });
    expect(await store.get(taskId)).toBe(record);
  });
});

test("a cancel that no hint has told of yet is noticed by the next write: the task is cancelled, whatever was refused", async () => {
  const store = withLostHints(new MemoryTaskStore());
  const worker = startEngine({ store });
  const other = startEngine({ store });
  const { taskId } = await worker.lifecycle.createTask();
  const task = worker.lifecycle.handle(taskId);
  await other.lifecycle.cancelTask(taskId);
  expect(task.signal.aborted).toBe(false);
  const outcome = await worker.lifecycle.run(task, async () => {
    await task.requestInput({ size: question() });
    return {};
  });
  expect(outcome).toMatchObject({ status: "cancelled" });
  expect(task.signal.reason).toMatchObject({ code: "cancelled" });
  expect(await other.lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
});
