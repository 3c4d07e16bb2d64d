import { faultyTaskStore } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, TaskWatchers, type DetailedTask } from "../src/index.ts";
import { startClock } from "./support/clock.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf, errorOf } from "./support/errors.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { accepted, question } from "./support/questions.ts";
import { gate } from "./support/turns.ts";

describe("waitForChange (P69, engine part)", () => {
  test("returns early when the task changes, with the task as it then is", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const waiting = lifecycle.waitForChange(taskId);
    await lifecycle.handle(taskId).progress("half");
    expect(await waiting).toMatchObject({ status: "working", statusMessage: "half" });
  });

  test("returns at once when the task is terminal or differs from what the caller has seen", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const seen = { status: "input_required", lastUpdatedAt: "2020-01-01T00:00:00.000Z" } as const;
    expect(await lifecycle.waitForChange(taskId, { seen })).toMatchObject({ status: "working" });
    await lifecycle.handle(taskId).complete({});
    const ended = await lifecycle.getTask(taskId);
    expect(await lifecycle.waitForChange(taskId, { seen: ended })).toEqual(ended);
    expect(await lifecycle.waitForChange(taskId)).toEqual(ended);
  });

  test("progress within the millisecond of what the caller has seen is a change, where it says what it read", async () => {
    const { now } = startClock();
    const { lifecycle } = startEngine({ now, store: new MemoryTaskStore({ now }) });
    const task = await lifecycle.createTask();
    const seen = { ...task, statusMessage: task.statusMessage };
    await lifecycle.handle(task.taskId).progress("first");
    const first = await lifecycle.waitForChange(task.taskId, { seen, timeoutMs: 60_000 });
    expect(first).toMatchObject({ statusMessage: "first", lastUpdatedAt: task.lastUpdatedAt });
    const waiting = lifecycle.waitForChange(task.taskId, { seen: first, timeoutMs: 60_000 });
    await lifecycle.handle(task.taskId).progress("second");
    expect(await waiting).toMatchObject({ statusMessage: "second", lastUpdatedAt: task.lastUpdatedAt });
  });

  test("returns the unchanged task when the time is up, and leaves nothing behind", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine();
    const task = await lifecycle.createTask();
    const waiting = lifecycle.waitForChange(task.taskId, { timeoutMs: 25_000, seen: task });
    const abandoned = lifecycle.waitForChange(task.taskId);
    await vi.advanceTimersByTimeAsync(24_999);
    let settled = false;
    void waiting.then(() => {
      settled = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await waiting).toEqual(task);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await abandoned, "30 seconds by default").toEqual(task);
    const look = lifecycle.waitForChange(task.taskId, { timeoutMs: 0 });
    await vi.advanceTimersByTimeAsync(1);
    expect(await look).toEqual(task);
    await lifecycle.handle(task.taskId).complete({});
    expect(lifecycle.stats).toEqual({
      attempts: 0,
      handlers: 0,
      queuedRuns: 0,
      lateOutcomes: 0,
      queuedWrites: 0,
      watchedTasks: 0,
      watchedOwners: 0,
    });
  });

  test("is ended by the caller's signal with its reason, and the task goes on", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const gone = new AbortController();
    const waiting = errorOf(lifecycle.waitForChange(taskId, { signal: gone.signal }));
    gone.abort(new Error("client gone"));
    expect(await waiting).toMatchObject({ message: "client gone" });
    const before = errorOf(lifecycle.waitForChange(taskId, { signal: gone.signal }));
    expect(await before).toMatchObject({ message: "client gone" });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    expect(lifecycle.handle(taskId).signal.aborted).toBe(false);
  });

  test("hears of changes by another engine, also on a store that gives no hints (P48)", async () => {
    vi.useFakeTimers();
    const store = fiveMethods(new MemoryTaskStore());
    const owner = startEngine({ store });
    const other = startEngine({ store, waitPollMs: 700 });
    const { taskId } = await owner.lifecycle.createTask();
    const waiting = other.lifecycle.waitForChange(taskId);
    await vi.advanceTimersByTimeAsync(100);
    await owner.lifecycle.handle(taskId).progress("half");
    await vi.advanceTimersByTimeAsync(700);
    expect(await waiting).toMatchObject({ statusMessage: "half" });
  });

  test("misses no change that comes while it looks: the look began before the change, and ended after it", async () => {
    const looked = gate();
    const reading = gate();
    const store = faultyTaskStore(new MemoryTaskStore(), {
      after: async ({ count, method }) => {
        // The first read is the call's own, the second its first look.
        if (method !== "get" || count !== 2) return;
        reading.open();
        await looked.opened;
      },
    });
    const { lifecycle } = startEngine({ store, waitPollMs: 600_000 });
    const { taskId } = await lifecycle.createTask();
    const waiting = lifecycle.waitForChange(taskId, { timeoutMs: 600_000 });
    await reading.opened;
    await lifecycle.handle(taskId).progress("meanwhile");
    looked.open();
    expect(await waiting).toMatchObject({ statusMessage: "meanwhile" });
  });

  test("of a task that expires or of no task is unknown_task", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine({ retentionMs: 1_000 });
    expect(await codeOf(lifecycle.waitForChange("nobody"))).toBe("unknown_task");
    const { taskId } = await lifecycle.createTask({ ttlMs: 1 });
    await lifecycle.handle(taskId).complete({});
    await vi.advanceTimersByTimeAsync(20 * 60_000);
    expect(await codeOf(lifecycle.waitForChange(taskId))).toBe("unknown_task");
  });
});

describe("onTaskChanged", () => {
  test("tells every write of this engine in order, exactly as polling would show it, until it is ended", async () => {
    const { lifecycle } = startEngine();
    const told: DetailedTask[] = [];
    const stop = lifecycle.onTaskChanged((task) => told.push(task));
    const { taskId } = await lifecycle.createTask({ work: { tool: "t" }, scope: "ann" });
    const task = lifecycle.handle(taskId);
    await task.progress("half");
    const asking = task.requestInput({ a: question() });
    await vi.waitFor(() => expect(told.at(-1)).toMatchObject({ status: "input_required" }));
    expect(told.at(-1)).toEqual(await lifecycle.getTask(taskId, { scope: "ann" }));
    await lifecycle.updateTask(taskId, { a: accepted() }, { scope: "ann" });
    await asking;
    await task.complete({ done: true });
    expect(told.map(({ status }) => status)).toEqual([
      "working",
      "working",
      "input_required",
      "working",
      "completed",
    ]);
    expect(told.at(-1)).toEqual(await lifecycle.getTask(taskId, { scope: "ann" }));
    stop();
    stop();
    await lifecycle.createTask();
    expect(told).toHaveLength(5);
  });

  test("the same function may listen twice and be ended once", async () => {
    const { lifecycle } = startEngine();
    const listener = vi.fn<(task: DetailedTask) => void>();
    const stop = lifecycle.onTaskChanged(listener);
    lifecycle.onTaskChanged(listener);
    stop();
    await lifecycle.createTask();
    expect(listener).toHaveBeenCalledTimes(1);
  });
});

describe("a store whose hints fail", () => {
  test("costs time and no answer: the failure is reported, looking by interval goes on", async () => {
    vi.useFakeTimers();
    const inner = new MemoryTaskStore();
    const store = Object.assign(fiveMethods(inner), {
      watch: () => Promise.reject(new Error("no more listeners")),
    });
    const engine = startEngine({ store });
    const other = startEngine({ store: inner });
    const { taskId } = await engine.lifecycle.createTask();
    const asking = engine.lifecycle.handle(taskId).requestInput({ a: question() });
    await vi.waitFor(async () => expect((await inner.get(taskId))?.status).toBe("input_required"));
    await other.lifecycle.updateTask(taskId, { a: accepted() });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await asking).toEqual({ a: accepted() });
    expect(takeErrors(engine)).toMatchObject([{ message: "no more listeners" }]);
  });
});

describe("TaskWatchers", () => {
  test("holds an entry for watched ids alone, and its ends may be called twice", async () => {
    const watchers = new TaskWatchers();
    const heard: string[] = [];
    const listener = (): void => void heard.push("a");
    const endFirst = watchers.add("a", listener);
    const endSecond = watchers.add("a", listener);
    watchers.notify("b");
    watchers.notify("a");
    expect(heard).toEqual(["a", "a"]);
    await endFirst();
    await endFirst();
    watchers.notify("a");
    expect(heard).toHaveLength(3);
    expect(watchers.size).toBe(1);
    await endSecond();
    expect(watchers.size).toBe(0);
  });

  test("an end from before a clear does not touch listeners from after it", async () => {
    const watchers = new TaskWatchers();
    const end = watchers.add("a", () => undefined);
    watchers.clear();
    watchers.add("a", () => undefined);
    await end();
    expect(watchers.size).toBe(1);
  });

  test("a listener that throws is reported, and the others still hear", () => {
    const errors: unknown[] = [];
    const heard: string[] = [];
    const watchers = new TaskWatchers((error) => errors.push(error));
    watchers.add("a", () => {
      throw new Error("broken");
    });
    watchers.add("a", () => heard.push("a"));
    watchers.notify("a");
    expect(errors).toHaveLength(1);
    expect(heard).toEqual(["a"]);
  });
});
