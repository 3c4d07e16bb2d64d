import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskHandle, type TaskPatch } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";

/** A store that counts its updates, each of which takes a moment. */
class CountingStore extends MemoryTaskStore {
  readonly patches: TaskPatch[] = [];
  failure: Error | undefined;

  override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    this.patches.push(patch);
    if (this.failure !== undefined) throw this.failure;
    await Promise.resolve();
    return super.update(taskId, patch, expectedVersion);
  }
}

async function newTask(options: { readonly progressIntervalMs?: number } = {}) {
  const store = new CountingStore();
  const engine = startEngine({ store, sweepIntervalMs: null, ...options });
  const { taskId } = await engine.lifecycle.createTask();
  const shown = async (): Promise<string | undefined> =>
    (await engine.lifecycle.getTask(taskId)).statusMessage;
  return { ...engine, store, taskId, shown, task: engine.lifecycle.handle(taskId) };
}

/** Ten reports for each of `ms` milliseconds. */
async function report(task: TaskHandle, ms: number): Promise<void> {
  const total = ms * 10;
  for (let done = 1; done <= total; done += 1) {
    void task.progress({ message: "copying", done, total });
    if (done % 10 === 0) await vi.advanceTimersByTimeAsync(1);
  }
}

describe("10,000 calls of progress a second are not 10,000 writes", () => {
  test("they are a burst, and then one write per interval; the last word is written", async () => {
    vi.useFakeTimers();
    const { store, task, taskId, lifecycle, shown } = await newTask({ progressIntervalMs: 200 });
    await report(task, 1_000);
    expect(store.patches.length).toBeGreaterThanOrEqual(5);
    expect(store.patches.length).toBeLessThanOrEqual(64 + 1_000 / 200 + 1);
    await report(task, 10_000);
    expect(store.patches.length).toBeLessThanOrEqual(64 + 11_000 / 200 + 1);
    await vi.advanceTimersByTimeAsync(400);
    expect(await shown()).toBe("copying: 100000 of 100000 (100 %)");
    expect(await lifecycle.getProgress(taskId)).toEqual({
      message: "copying",
      done: 100_000,
      total: 100_000,
    });
    const after = store.patches.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(store.patches.filter((patch) => patch.progress !== undefined)).toHaveLength(after);
  });

  test("a handler that reports each of a few steps is written step by step", async () => {
    vi.useFakeTimers();
    const { store, task, shown } = await newTask();
    for (let done = 1; done <= 20; done += 1) {
      await task.progress({ done, total: 20 });
      expect(await shown()).toBe(`${done} of 20 (${done * 5} %)`);
    }
    expect(store.patches).toHaveLength(20);
  });

  test("all at once they are merged into what is not written yet", async () => {
    const { store, task, shown } = await newTask();
    await Promise.all(
      Array.from({ length: 10_000 }, (_unused, done) => task.progress({ done, total: 10_000 })),
    );
    expect(store.patches.length).toBeLessThanOrEqual(3);
    expect(await shown()).toBe("9999 of 10000 (99 %)");
  });

  test("0 is no limit", async () => {
    vi.useFakeTimers();
    const { store, task } = await newTask({ progressIntervalMs: 0 });
    for (let done = 1; done <= 200; done += 1) await task.progress({ done });
    expect(store.patches).toHaveLength(200);
  });

  test("a result is not held up by progress that waits, and the task stays as it ended", async () => {
    vi.useFakeTimers();
    const { store, task, taskId, lifecycle } = await newTask();
    await report(task, 1_000);
    await task.complete({ content: [] });
    const ended = JSON.stringify(await lifecycle.getTask(taskId));
    const writes = store.patches.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(store.patches).toHaveLength(writes);
    expect(JSON.stringify(await lifecycle.getTask(taskId))).toBe(ended);
  });

  test("a late write that fails is reported, and the next one says what it would have said", async () => {
    vi.useFakeTimers();
    const started = await newTask();
    await report(started.task, 100);
    await vi.advanceTimersByTimeAsync(1_000);
    started.store.failure = new Error("disk gone");
    void started.task.progress("kept in mind").catch(() => undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    started.store.failure = undefined;
    takeErrors(started);
    await started.task.progress({ done: 1 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await started.shown()).toBe("1");
  });
});

test("how often a question was asked is kept with the checkpoint", async () => {
  const { lifecycle, store } = await newTask();
  const attempt = lifecycle.begin();
  expect([attempt.countAsked("a"), attempt.countAsked("b"), attempt.countAsked("a")]).toEqual([1, 1, 2]);
  await attempt.saveCheckpoint({ page: 3 });
  attempt.countAsked("a");
  expect((await store.get(attempt.taskId))?.checkpoint).toEqual({
    value: { page: 3 },
    asked: { a: 2, b: 1 },
  });
  await attempt.complete({});
});
