import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore } from "../src/index.ts";
import { startEngine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { accepted, question } from "./support/questions.ts";

const nothing = {
  attempts: 0,
  handlers: 0,
  queuedRuns: 0,
  lateOutcomes: 0,
  queuedWrites: 0,
  watchedTasks: 0,
  watchedOwners: 0,
};

/** How many tasks of the store somebody watches. */
function watchedIds(store: MemoryTaskStore): () => number {
  const watched = new Map<symbol, string>();
  const watch = store.watch.bind(store);
  vi.spyOn(store, "watch").mockImplementation(async (taskId, onChange) => {
    const end = await watch(taskId, onChange);
    const key = Symbol(taskId);
    watched.set(key, taskId);
    return async () => {
      watched.delete(key);
      await end();
    };
  });
  return () => new Set(watched.values()).size;
}

// CASES part 2, engine: "leak. cancelTask for tasks whose worker is elsewhere leaves one AbortController per id for ever".
describe("nothing is left of a task that has ended (P23, engine part)", () => {
  test("after 10,000 tasks that were created, reported, cancelled by another engine, read and ended", async () => {
    const store = new MemoryTaskStore();
    const watched = watchedIds(store);
    const owner = startEngine({ store });
    const other = startEngine({ store });
    for (let batch = 0; batch < 100; batch += 1) {
      await Promise.all(
        Array.from({ length: 100 }, async (_, index) => {
          const { taskId } = await owner.lifecycle.createTask({ ttlMs: 1 });
          const task = owner.lifecycle.handle(taskId);
          await task.progress("half");
          if (index % 2 === 0) await other.lifecycle.cancelTask(taskId);
          await (index % 3 === 0 ? task.cancelled() : task.complete({ index }));
          await other.lifecycle.getTask(taskId);
          await other.lifecycle.cancelTask(taskId);
          expect(await codeOf(() => owner.lifecycle.handle(taskId))).toBe("lease_lost");
        }),
      );
    }
    await vi.waitFor(() => expect(owner.lifecycle.stats).toEqual(nothing));
    expect(other.lifecycle.stats).toEqual(nothing);
    await vi.waitFor(() => expect(watched()).toBe(0));
    expect(store.size).toBe(10_000);
  });

  test("after 1,000 rounds of question and answer, and as many waits", async () => {
    const store = new MemoryTaskStore();
    const watched = watchedIds(store);
    const { lifecycle } = startEngine({ store });
    const round = async (): Promise<void> => {
      const { taskId } = await lifecycle.createTask();
      const running = lifecycle.run(lifecycle.handle(taskId), async (task) => ({
        given: await task.requestInput({ a: question() }),
      }));
      let shown = await lifecycle.getTask(taskId);
      while (shown.status !== "input_required")
        shown = await lifecycle.waitForChange(taskId, { seen: shown });
      await lifecycle.updateTask(taskId, { a: accepted() });
      expect(await running).toMatchObject({ status: "completed" });
    };
    for (let batch = 0; batch < 20; batch += 1) await Promise.all(Array.from({ length: 50 }, round));
    await vi.waitFor(() => expect(lifecycle.stats).toEqual(nothing));
    await vi.waitFor(() => expect(watched()).toBe(0));
  });

  test("after attempts that were never recorded, or whose create was refused", async () => {
    const { lifecycle, store } = startEngine();
    for (let made = 0; made < 1_000; made += 1) await lifecycle.run(lifecycle.begin(), () => ({ made }));
    await store.close();
    for (let made = 0; made < 100; made += 1)
      expect(await codeOf(lifecycle.createTask())).toBe("store_closed");
    expect(lifecycle.stats).toEqual(nothing);
  });

  test("calls about unknown tasks leave nothing", async () => {
    const { lifecycle } = startEngine();
    for (let call = 0; call < 1_000; call += 1) {
      const taskId = `nobody-${call}`;
      expect(await codeOf(lifecycle.getTask(taskId))).toBe("unknown_task");
      expect(await codeOf(lifecycle.cancelTask(taskId))).toBe("unknown_task");
    }
    expect(lifecycle.stats).toEqual(nothing);
  });
});

describe("timers", () => {
  test("a constructor starts none, and close leaves none, whatever was open", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine();
    expect(vi.getTimerCount()).toBe(0);
    const { taskId } = await lifecycle.createTask();
    const asking = codeOf(lifecycle.handle(taskId).requestInput({ a: question() }));
    const waiting = codeOf(lifecycle.waitForChange(taskId));
    void lifecycle.run(lifecycle.begin(), () => new Promise(() => undefined));
    await vi.advanceTimersByTimeAsync(100);
    expect(vi.getTimerCount()).toBeGreaterThan(1);
    const closing = lifecycle.close({ shutdownGraceMs: 1_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    expect(await waiting).toBe("store_closed");
    expect(await asking).toBe("shutdown");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("an ended wait leaves no poller", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const idle = vi.getTimerCount();
    const waiting = lifecycle.waitForChange(taskId);
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(idle + 2);
    await lifecycle.handle(taskId).progress("half");
    await waiting;
    expect(vi.getTimerCount()).toBe(idle);
  });
});

// CASES part 2, engine: "every poll of a big task costs: each tasks/get 70 ms of blocked loop".
test("a poll of a big result hands out the same frozen object: nothing is copied", async () => {
  const { lifecycle } = startEngine();
  const { taskId } = await lifecycle.createTask();
  const big = {
    content: Array.from({ length: 20_000 }, (_, line) => ({ type: "text", text: `line ${line}` })),
  };
  await lifecycle.handle(taskId).complete(big);
  const first = await lifecycle.getTask(taskId);
  const second = await lifecycle.getTask(taskId);
  expect(first).toMatchObject({ status: "completed" });
  expect((first as { result: object }).result).toBe((second as { result: object }).result);
  expect(Object.isFrozen((first as { result: object }).result)).toBe(true);
  expect(Object.isFrozen(big), "the handler's own object is left alone").toBe(false);
});
