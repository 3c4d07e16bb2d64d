import { beforeEach, describe, expect, test, vi } from "vitest";

import { dispatchOwner, MemoryTaskStore, type Dispatch, type TaskStore } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codedErrorOf, codeOf } from "./support/errors.ts";
import { recordOf } from "./support/killed-task.ts";
import { startWorker, untilAborted, type Worker, type WorkerOptions } from "./support/worker.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;
const dispatchMs = 60_000;
const work = { tool: "crawl", arguments: { url: "https://example.com" } };

beforeEach(() => {
  vi.useFakeTimers();
});

/** An engine that has its work done elsewhere, and what it had delivered. */
function startFront(
  store: TaskStore,
  options: Partial<WorkerOptions> = {},
): Worker & { readonly dispatched: Dispatch[] } {
  const dispatched: Dispatch[] = [];
  const worker = startWorker({
    store,
    tools: { crawl: {} },
    dispatch: async (dispatch) => {
      dispatched.push(dispatch);
    },
    ...options,
  });
  return { ...worker, dispatched };
}

describe("a task for a worker elsewhere", () => {
  test("is created with a dispatch lease and delivered once, under the number of its first run", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId, status } = await front.lifecycle.dispatchTask({ work });
    expect(status).toBe("working");
    expect(front.dispatched).toEqual([{ taskId, tool: "crawl", attempt: 1 }]);
    expect(await recordOf(store, taskId)).toMatchObject({
      attempt: 0,
      crashes: 0,
      work,
      lease: { owner: dispatchOwner, durationMs: dispatchMs },
    });
    expect(front.lifecycle.stats.attempts, "nothing runs here").toBe(0);
    expect(front.starts).toEqual([]);
  });

  test("is taken by a worker at once: the run that was announced begins", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const worker = startWorker({ store, tools: { crawl: { handler: () => ({ done: true }) } } });
    expect(await worker.lifecycle.runTask(taskId)).toMatchObject({
      status: "completed",
      result: { done: true },
    });
    expect(worker.starts).toMatchObject([{ task: { attempt: 1 }, record: { work } }]);
    expect(await recordOf(store, taskId)).toMatchObject({ attempt: 1, crashes: 0 });
    await vi.advanceTimersByTimeAsync(10 * dispatchMs);
    expect(front.dispatched).toHaveLength(1);
  });

  test("that was delivered twice is refused to the second worker, retryably, and runs once", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const [first, second] = [
      startWorker({ store, tools: { crawl: {} } }),
      startWorker({ store, tools: { crawl: {} } }),
    ];
    const task = await first.lifecycle.acquire(taskId);
    expect(await codedErrorOf(second.lifecycle.runTask(taskId))).toMatchObject({
      code: "lease_lost",
      retryable: true,
    });
    expect(await codedErrorOf(second.lifecycle.acquire(taskId))).toMatchObject({ retryable: true });
    expect(await codedErrorOf(first.lifecycle.runTask(taskId))).toMatchObject({ retryable: true });
    expect(second.starts).toEqual([]);
    await task.complete({ once: true });
    expect(await second.lifecycle.runTask(taskId), "ended already: not run").toMatchObject({
      status: "completed",
      result: { once: true },
    });
    expect(await codeOf(second.lifecycle.acquire(taskId))).toBe("task_terminal");
  });

  test("of 20 workers who take it at once one gets it", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const workers = Array.from({ length: 20 }, () => startEngine({ store }));
    const tries = Promise.allSettled(workers.map(({ lifecycle }) => lifecycle.acquire(taskId)));
    await vi.advanceTimersByTimeAsync(5_000);
    expect((await tries).filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await recordOf(store, taskId)).toMatchObject({ attempt: 1 });
  });

  test("that nobody takes is delivered again each time its dispatch lease lapses, under the same number", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    await vi.advanceTimersByTimeAsync(dispatchMs - 1);
    expect(front.dispatched).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(beatMs + 1);
    expect(front.dispatched).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(3 * (dispatchMs + beatMs));
    expect(front.dispatched.length).toBeGreaterThanOrEqual(4);
    for (const dispatch of front.dispatched) expect(dispatch).toEqual({ taskId, tool: "crawl", attempt: 1 });
    expect(await recordOf(store, taskId)).toMatchObject({
      attempt: 0,
      crashes: 0,
      lease: { owner: dispatchOwner },
    });
    expect(front.starts).toEqual([]);
  });

  test("whose first delivery fails is accepted all the same: told, and delivered again", async () => {
    const store = new MemoryTaskStore();
    let failing = true;
    const dispatched: Dispatch[] = [];
    const front = startFront(store, {
      dispatch: async (dispatch) => {
        if (failing) throw new Error("No queue.");
        dispatched.push(dispatch);
      },
    });
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    expect(takeErrors(front)).toMatchObject([{ message: "No queue." }]);
    failing = false;
    await vi.advanceTimersByTimeAsync(dispatchMs + beatMs);
    expect(dispatched).toEqual([{ taskId, tool: "crawl", attempt: 1 }]);
  });

  test("whose delivery throws instead of rejecting is accepted too", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store, {
      dispatch: () => {
        throw new Error("No queue.");
      },
    });
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    expect(takeErrors(front)).toMatchObject([{ message: "No queue." }]);
    expect(await recordOf(store, taskId)).toMatchObject({ status: "working" });
  });

  test("whose delivery hangs keeps no other from being delivered again", async () => {
    const store = new MemoryTaskStore();
    const seen: string[] = [];
    let stuck = "";
    const front = startFront(store, {
      dispatch: ({ taskId }) => {
        seen.push(taskId);
        return taskId === stuck ? new Promise(() => undefined) : Promise.resolve();
      },
    });
    const hangs = await front.lifecycle.dispatchTask({ work });
    const other = await front.lifecycle.dispatchTask({ work });
    stuck = hangs.taskId;
    seen.length = 0;
    await vi.advanceTimersByTimeAsync(5 * (dispatchMs + beatMs));
    expect(seen.filter((taskId) => taskId === other.taskId).length).toBeGreaterThanOrEqual(2);
    expect(front.lifecycle.stats.attempts).toBe(0);
  });

  test("whose worker dies is delivered again under the next number, and the crash is counted", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const worker = startWorker({ store, tools: { crawl: {} } });
    void worker.lifecycle.runTask(taskId).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    worker.die();
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(front.dispatched).toMatchObject([{ attempt: 1 }, { taskId, attempt: 2 }]);
    expect(await recordOf(store, taskId)).toMatchObject({ attempt: 1, crashes: 1, released: true });
    await vi.advanceTimersByTimeAsync(dispatchMs + beatMs);
    expect(front.dispatched.at(-1), "not delivered is no crash").toMatchObject({ attempt: 2 });
    expect(await recordOf(store, taskId)).toMatchObject({ attempt: 1, crashes: 1 });
    const next = startWorker({ store, tools: { crawl: { handler: () => ({}) } } });
    await next.lifecycle.runTask(taskId);
    expect(next.starts).toMatchObject([{ task: { attempt: 2 } }]);
  });

  test("of a tool that must not run twice is delivered again while no run has begun, and never after", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store, { tools: { crawl: { onInterrupted: "fail" } } });
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    await vi.advanceTimersByTimeAsync(dispatchMs + beatMs);
    expect(front.dispatched).toHaveLength(2);
    const worker = startWorker({ store, tools: { crawl: { onInterrupted: "fail" } } });
    void worker.lifecycle.runTask(taskId).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    worker.die();
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(front.dispatched).toHaveLength(2);
    expect(await recordOf(store, taskId)).toMatchObject({
      status: "failed",
      error: { data: { reason: "interrupted" } },
    });
  });

  test("is given up after maxAttempts crashes of workers", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store, { tools: { crawl: { maxAttempts: 2 } } });
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    for (let life = 0; life < 2; life += 1) {
      const worker = startWorker({ store, tools: { crawl: { maxAttempts: 2 } } });
      void worker.lifecycle.runTask(taskId).catch(() => undefined);
      await vi.advanceTimersByTimeAsync(1_000);
      worker.die();
      await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    }
    expect(front.dispatched.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(await recordOf(store, taskId)).toMatchObject({
      status: "failed",
      error: { data: { reason: "max_attempts" } },
    });
  });

  test("that is cancelled while it waits is cancelled at once, and its worker comes too late", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    await front.lifecycle.cancelTask(taskId);
    expect(await front.lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
    const worker = startWorker({ store, tools: { crawl: {} } });
    expect(await worker.lifecycle.runTask(taskId)).toMatchObject({ status: "cancelled" });
    expect(worker.starts).toEqual([]);
  });

  test("that is cancelled while its worker runs it hears of it there", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const worker = startWorker({ store, tools: { crawl: {} } });
    const running = worker.lifecycle.runTask(taskId);
    await vi.advanceTimersByTimeAsync(1_000);
    await front.lifecycle.cancelTask(taskId);
    expect(await running).toMatchObject({ status: "cancelled" });
  });

  test("is not claimed by a recovery before its time, whoever recovers", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const worker = startWorker({ store, tools: { crawl: {} } });
    await vi.advanceTimersByTimeAsync(dispatchMs - 1);
    expect(await worker.lifecycle.recover()).toBe(0);
    expect((await recordOf(store, taskId)).attempt).toBe(0);
  });
});

describe("runTask", () => {
  test("of a tool that is not registered here is a mistake of the program, and takes nothing", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const before = await recordOf(store, taskId);
    const worker = startWorker({ store, tools: { other: {} } });
    await expect(worker.lifecycle.runTask(taskId)).rejects.toBeInstanceOf(TypeError);
    expect(await store.get(taskId)).toBe(before);
    expect(await codeOf(worker.lifecycle.runTask("nobody"))).toBe("unknown_task");
  });

  test("that a shutdown interrupts is retryable, and the task is free", async () => {
    const store = new MemoryTaskStore();
    const front = startFront(store);
    const { taskId } = await front.lifecycle.dispatchTask({ work });
    const worker = startWorker({ store, tools: { crawl: { handler: untilAborted } } });
    const running = codedErrorOf(worker.lifecycle.runTask(taskId));
    await vi.advanceTimersByTimeAsync(1_000);
    const closing = worker.lifecycle.close();
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    expect(await running).toMatchObject({ code: "shutdown", retryable: true });
    expect(await recordOf(store, taskId)).toMatchObject({ released: true, attempt: 1, crashes: 0 });
    const next = startWorker({ store, tools: { crawl: { handler: () => ({ done: true }) } } });
    expect(await next.lifecycle.runTask(taskId)).toMatchObject({ status: "completed" });
  });
});
