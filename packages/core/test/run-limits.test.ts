import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type JsonObject, type TaskAttempt, type TaskHandler } from "../src/index.ts";
import { startEngine, takeErrors, type Engine } from "./support/engine.ts";
import { errorOf } from "./support/errors.ts";
import { recordOf } from "./support/killed-task.ts";
import { accepted, question } from "./support/questions.ts";
import { gate } from "./support/turns.ts";
import { untilAborted } from "./support/worker.ts";

const minute = 60_000;
/** Time for a handler to hear its signal. */
const reactionMs = 250;
const unhandled: unknown[] = [];
const noteUnhandled = (reason: unknown): void => {
  unhandled.push(reason);
};

beforeEach(() => {
  vi.useFakeTimers();
  process.on("unhandledRejection", noteUnhandled);
});

afterEach(() => {
  process.off("unhandledRejection", noteUnhandled);
  expect(unhandled.splice(0)).toEqual([]);
});

/** Waits until these questions can be read; a fingerprint takes a moment of real time. */
async function asked({ store }: Engine, { taskId }: TaskAttempt, ...keys: string[]): Promise<void> {
  await vi.waitFor(async () => {
    const { inputs = {} } = await recordOf(store, taskId);
    expect(Object.keys(inputs).toSorted()).toEqual(keys);
  });
}

async function begin({ lifecycle }: Engine): Promise<TaskAttempt> {
  const attempt = lifecycle.begin({ work: { tool: "crawl" } });
  await attempt.promote();
  return attempt;
}

describe("maxRunMs", () => {
  test("aborts the signal with deadline_exceeded, and a handler that stops leaves its task failed", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const running = engine.lifecycle.run(task, untilAborted, { maxRunMs: 10 * minute });
    await vi.advanceTimersByTimeAsync(10 * minute - 1);
    expect(task.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(task.signal.reason).toMatchObject({ code: "deadline_exceeded" });
    expect(await running).toMatchObject({ status: "failed" });
    expect(await recordOf(engine.store, task.taskId)).toMatchObject({
      status: "failed",
      error: { code: -32_603, data: { code: "deadline_exceeded", recoveryHint: expect.any(String) } },
    });
    expect(engine.lifecycle.stats.lateOutcomes).toBe(0);
  });

  test("rejecting with whatever error upon the deadline is a missed deadline, not a tool error", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const handler: TaskHandler = (attempt) =>
      untilAborted(attempt).catch(() => Promise.reject(new Error("The page was closed.")));
    const running = engine.lifecycle.run(task, handler, { maxRunMs: minute });
    await vi.advanceTimersByTimeAsync(minute);
    expect(await running).toMatchObject({
      status: "failed",
      error: { data: { code: "deadline_exceeded" } },
    });
  });

  test("a handler that resolves just after its signal wins: what it has done counts", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const handler: TaskHandler = async ({ signal }) => {
      await new Promise((resolve) => {
        signal.addEventListener("abort", () => setTimeout(resolve, reactionMs - 1));
      });
      return { partial: true };
    };
    const running = engine.lifecycle.run(task, handler, { maxRunMs: minute });
    await vi.advanceTimersByTimeAsync(minute + reactionMs);
    expect(await running).toMatchObject({ status: "completed", result: { partial: true } });
    expect(engine.lifecycle.stats.lateOutcomes).toBe(0);
  });

  test.each<[string, () => Promise<JsonObject>]>([
    ["resolves", async () => ({ late: true })],
    ["rejects", () => Promise.reject(new Error("late"))],
  ])(
    "a handler that ignores its signal fails its task; that it %s at last is dropped, counted and reported",
    async (_how, end) => {
      const engine = startEngine();
      const task = await begin(engine);
      const stubborn = gate();
      const running = engine.lifecycle.run(task, () => stubborn.opened.then(end), { maxRunMs: minute });
      await vi.advanceTimersByTimeAsync(minute + reactionMs);
      expect(await running).toMatchObject({ status: "failed" });
      const failed = await recordOf(engine.store, task.taskId);
      expect(failed).toMatchObject({ status: "failed", error: { data: { code: "deadline_exceeded" } } });
      expect(engine.lifecycle.stats).toMatchObject({ attempts: 0, handlers: 1, lateOutcomes: 0 });
      stubborn.open();
      await vi.advanceTimersByTimeAsync(0);
      expect(await engine.store.get(task.taskId)).toBe(failed);
      expect(engine.lifecycle.stats).toMatchObject({ handlers: 0, lateOutcomes: 1 });
      expect(takeErrors(engine)).toMatchObject([
        { code: "deadline_exceeded", message: expect.stringContaining(task.taskId) },
      ]);
    },
  );

  test("a handler that never comes to its end costs its task nothing, and keeps its place", async () => {
    const engine = startEngine({ maxConcurrentRuns: 1 });
    const task = await begin(engine);
    const running = engine.lifecycle.run(task, () => new Promise<never>(() => undefined), {
      maxRunMs: minute,
    });
    await vi.advanceTimersByTimeAsync(minute + reactionMs);
    expect(await running).toMatchObject({ status: "failed" });
    const next = await begin(engine);
    void engine.lifecycle.run(next, () => ({}));
    await vi.advanceTimersByTimeAsync(minute);
    expect(engine.lifecycle.stats.queuedRuns).toBe(1);
    expect(await recordOf(engine.store, next.taskId)).toMatchObject({ status: "working" });
  });

  test("what a late handler still writes is refused, and nothing of it is an unhandled rejection", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const stubborn = gate();
    const codes: unknown[] = [];
    const running = engine.lifecycle.run(
      task,
      async (attempt) => {
        await stubborn.opened;
        void attempt.progress("late");
        void attempt.saveCheckpoint(1);
        void attempt.requestInput({ q: question() });
        codes.push(await errorOf(attempt.complete({})), await errorOf(attempt.resumeInput()));
        throw new Error("late");
      },
      { maxRunMs: minute },
    );
    await vi.advanceTimersByTimeAsync(minute + reactionMs);
    await running;
    const failed = await recordOf(engine.store, task.taskId);
    stubborn.open();
    await vi.advanceTimersByTimeAsync(minute);
    expect(codes).toMatchObject([{ code: "task_terminal" }, { code: "task_terminal" }]);
    expect(await engine.store.get(task.taskId)).toBe(failed);
    takeErrors(engine);
  });

  test("counts working time alone: a question of 54 minutes trips nothing (P29)", async () => {
    const engine = startEngine({ retentionMs: minute });
    const task = await begin(engine);
    const steps = [gate(), gate()];
    const running = engine.lifecycle.run(
      task,
      async (attempt) => {
        await steps[0]?.opened;
        const { size } = await attempt.requestInput({ size: question() });
        await steps[1]?.opened;
        return { size };
      },
      { maxRunMs: 10 * minute },
    );
    await vi.advanceTimersByTimeAsync(5 * minute);
    steps[0]?.open();
    await asked(engine, task, "size");
    await vi.advanceTimersByTimeAsync(54 * minute);
    expect(task.signal.aborted).toBe(false);
    expect(await engine.lifecycle.getTask(task.taskId)).toMatchObject({ status: "input_required" });
    await engine.lifecycle.updateTask(task.taskId, { size: accepted() });
    await vi.advanceTimersByTimeAsync(5 * minute - 5_000);
    expect(task.signal.aborted, "its working time is not over").toBe(false);
    steps[1]?.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(await running).toMatchObject({ status: "completed", result: { size: accepted() } });
  });

  test("goes on counting when the answers are there, and stands still while any question is open", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const worked = gate();
    const running = engine.lifecycle.run(
      task,
      async (attempt) => {
        await worked.opened;
        await Promise.all([
          attempt.requestInput({ a: question("a") }),
          attempt.requestInput({ b: question("b") }),
        ]);
        return untilAborted(attempt);
      },
      { maxRunMs: minute },
    );
    await vi.advanceTimersByTimeAsync(minute / 2);
    worked.open();
    await asked(engine, task, "a", "b");
    await vi.advanceTimersByTimeAsync(10 * minute);
    await engine.lifecycle.updateTask(task.taskId, { a: accepted() });
    await vi.advanceTimersByTimeAsync(10 * minute);
    expect(task.signal.aborted, "b is open").toBe(false);
    await engine.lifecycle.updateTask(task.taskId, { b: accepted() });
    await vi.advanceTimersByTimeAsync(minute / 2 - 5_000);
    expect(task.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(task.signal.reason).toMatchObject({ code: "deadline_exceeded" });
    expect(await running).toMatchObject({ status: "failed" });
  });

  test("is counted anew for each attempt", async () => {
    const store = new MemoryTaskStore();
    const first = startEngine({ store });
    const task = await begin(first);
    void first.lifecycle.run(task, untilAborted, { maxRunMs: minute });
    await vi.advanceTimersByTimeAsync(minute - 1_000);
    const closing = first.lifecycle.close();
    await vi.advanceTimersByTimeAsync(500);
    await closing;
    const second = startEngine({ store });
    const again = await second.lifecycle.acquire(task.taskId);
    const running = second.lifecycle.run(again, untilAborted, { maxRunMs: minute });
    await vi.advanceTimersByTimeAsync(minute - 1);
    expect(again.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await running).toMatchObject({ status: "failed" });
  });

  test("of work that is not recorded ends the call: nothing is written", async () => {
    const engine = startEngine();
    const creating = vi.spyOn(engine.store, "create");
    const stubborn = gate();
    const running = engine.lifecycle.run(
      engine.lifecycle.begin(),
      () => stubborn.opened.then(() => ({ late: true })),
      { maxRunMs: 500 },
    );
    await vi.advanceTimersByTimeAsync(500 + reactionMs);
    expect(await running).toMatchObject({
      status: "failed",
      error: { data: { code: "deadline_exceeded" } },
    });
    expect(creating).not.toHaveBeenCalled();
    expect(engine.lifecycle.stats.attempts).toBe(0);
    stubborn.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(engine.lifecycle.stats).toMatchObject({ handlers: 0, lateOutcomes: 1 });
    takeErrors(engine);
  });

  test("work that is recorded by its first question goes on under the same clock", async () => {
    const engine = startEngine();
    const task = engine.lifecycle.begin();
    const running = engine.lifecycle.run(
      task,
      async (attempt) => {
        await attempt.requestInput({ q: question() });
        return untilAborted(attempt);
      },
      { maxRunMs: minute },
    );
    await asked(engine, task, "q");
    await vi.advanceTimersByTimeAsync(5 * minute);
    expect(task.signal.aborted).toBe(false);
    await engine.lifecycle.updateTask(task.taskId, { q: accepted() });
    await vi.advanceTimersByTimeAsync(minute + reactionMs);
    expect(await running).toMatchObject({ status: "failed" });
    expect(await recordOf(engine.store, task.taskId)).toMatchObject({ status: "failed" });
  });

  test("no timer is left of a run that ended in time", async () => {
    const engine = startEngine();
    const idle = vi.getTimerCount();
    await engine.lifecycle.run(engine.lifecycle.begin(), () => ({}), { maxRunMs: minute, cancelGraceMs: 1 });
    // Nothing but the housekeeping of the engine.
    expect(vi.getTimerCount()).toBe(idle + 2);
  });
});

describe("cancelGraceMs", () => {
  test.each<[string, () => Promise<JsonObject>]>([
    ["resolves", async () => ({ late: true })],
    ["rejects", () => Promise.reject(new Error("late"))],
  ])(
    "makes a task cancelled without its handler; that it %s at last is dropped quietly (P14)",
    async (_how, end) => {
      const engine = startEngine();
      const task = await begin(engine);
      const stubborn = gate();
      const running = engine.lifecycle.run(task, () => stubborn.opened.then(end), { cancelGraceMs: 5_000 });
      await engine.lifecycle.cancelTask(task.taskId);
      await vi.advanceTimersByTimeAsync(4_999);
      expect(await engine.lifecycle.getTask(task.taskId)).toMatchObject({ status: "working" });
      await vi.advanceTimersByTimeAsync(1);
      expect(await running).toEqual({ status: "cancelled" });
      const cancelled = await recordOf(engine.store, task.taskId);
      expect(cancelled).toMatchObject({ status: "cancelled" });
      stubborn.open();
      await vi.advanceTimersByTimeAsync(0);
      expect(await engine.store.get(task.taskId)).toBe(cancelled);
      expect(engine.lifecycle.stats).toMatchObject({ handlers: 0, lateOutcomes: 1 });
      expect(engine.errors, "in silence").toEqual([]);
    },
  );

  test("a handler that finishes within the grace keeps its result", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const finishing = gate();
    const running = engine.lifecycle.run(task, () => finishing.opened.then(() => ({ done: true })), {
      cancelGraceMs: 5_000,
    });
    await engine.lifecycle.cancelTask(task.taskId);
    await vi.advanceTimersByTimeAsync(4_999);
    finishing.open();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await running).toMatchObject({ status: "completed" });
  });

  test("is off by default: a handler may take its time to stop", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const finishing = gate();
    const running = engine.lifecycle.run(task, () => finishing.opened.then(() => ({ done: true })));
    await engine.lifecycle.cancelTask(task.taskId);
    await vi.advanceTimersByTimeAsync(24 * 60 * minute);
    expect(await engine.lifecycle.getTask(task.taskId)).toMatchObject({ status: "working" });
    finishing.open();
    expect(await running).toMatchObject({ status: "completed" });
  });

  test("without it, a handler that ignores its cancel ends as cancelled at its run deadline", async () => {
    const engine = startEngine();
    const task = await begin(engine);
    const stubborn = gate();
    const running = engine.lifecycle.run(task, () => stubborn.opened.then(() => ({ late: true })), {
      maxRunMs: minute,
    });
    await engine.lifecycle.cancelTask(task.taskId);
    await vi.advanceTimersByTimeAsync(minute - 1);
    expect(await engine.lifecycle.getTask(task.taskId)).toMatchObject({ status: "working" });
    await vi.advanceTimersByTimeAsync(1);
    expect(await running).toEqual({ status: "cancelled" });
    stubborn.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(engine.lifecycle.stats.lateOutcomes).toBe(1);
  });
});

test.each([
  [{ maxRunMs: 0 }, RangeError],
  [{ maxRunMs: -1 }, RangeError],
  [{ maxRunMs: 1.5 }, TypeError],
  [{ maxRunMs: "5" }, TypeError],
  [{ maxRunMs: 2 ** 31 }, RangeError],
  [{ cancelGraceMs: -1 }, RangeError],
  [{ cancelGraceMs: Number.NaN }, TypeError],
  [{ cancelGraceMs: 2 ** 31 }, RangeError],
])("limits of %j are refused before the handler begins", async (limits, kind) => {
  const engine = startEngine();
  const task = await begin(engine);
  let begun = false;
  const handler = (): JsonObject => {
    begun = true;
    return {};
  };
  expect(await errorOf(() => engine.lifecycle.run(task, handler, limits as never))).toBeInstanceOf(kind);
  expect(begun).toBe(false);
});
