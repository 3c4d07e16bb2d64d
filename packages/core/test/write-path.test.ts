import { faultyTaskStore, type StoreCall } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, storeErrors, type TaskStore } from "../src/index.ts";
import { startClock } from "./support/clock.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf, errorOf } from "./support/errors.ts";
import { accepted, question } from "./support/questions.ts";
import { gate, nextTurn } from "./support/turns.ts";

/** A store that refuses the first updates with a conflict, as if somebody else had written each time. */
function contested(conflicts: number): TaskStore {
  const inner = new MemoryTaskStore();
  let left = conflicts;
  return faultyTaskStore(inner, {
    before: async ({ method, taskId = "" }: StoreCall) => {
      if (method !== "update" || left === 0) return;
      left -= 1;
      const record = await inner.get(taskId);
      await inner.update(taskId, { data: "theirs" }, record?.version ?? 0);
    },
  });
}

describe("parallel writes to one task", () => {
  // CASES part 2, engine: "CAS starvation in ONE process".
  test("32 writers with 50 progress calls each all succeed, and the last one is what stays", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const writer = async (name: number): Promise<void> => {
      for (let done = 1; done <= 50; done += 1) await task.progress({ message: `writer ${name}`, done });
    };
    await Promise.all(Array.from({ length: 32 }, (_, name) => writer(name)));
    await task.progress("all done");
    expect(await store.get(taskId)).toMatchObject({
      progress: { message: "all done" },
      statusMessage: "all done",
    });
  });

  test("1,000 different writes at once never meet a conflict in one process", async () => {
    let conflicts = 0;
    const inner = new MemoryTaskStore();
    const store: TaskStore = {
      create: (record) => inner.create(record),
      get: (id) => inner.get(id),
      sweep: () => inner.sweep(),
      close: () => inner.close(),
      update: async (id, patch, version) => {
        try {
          return await inner.update(id, patch, version);
        } catch (error) {
          conflicts += 1;
          throw error;
        }
      },
    };
    const { lifecycle } = startEngine({ store });
    const { taskId, lastUpdatedAt } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    await Promise.all(Array.from({ length: 1_000 }, (_, page) => task.saveCheckpoint({ page })));
    expect(conflicts).toBe(0);
    expect((await lifecycle.getTask(taskId)).lastUpdatedAt >= lastUpdatedAt).toBe(true);
  });

  // CASES part 2, engine: "six conflicts in a row reach the client of tasks/update too".
  test.each([6, 12])("%i conflicts in a row with another process reach no caller", async (conflicts) => {
    const { lifecycle } = startEngine({ store: contested(conflicts), random: () => 0 });
    const { taskId } = await lifecycle.createTask();
    const asking = lifecycle.handle(taskId).requestInput({ size: question() });
    await vi.waitFor(async () => expect((await lifecycle.getTask(taskId)).status).toBe("input_required"));
    await lifecycle.updateTask(taskId, { size: accepted() });
    expect(await asking).toEqual({ size: accepted() });
  });

  test("constant conflict is told in the end, as retryable, instead of trying for ever", async () => {
    // One more than is tried: after that the lease can be given back.
    const { lifecycle } = startEngine({ store: contested(41), random: () => 0 });
    const { taskId } = await lifecycle.createTask();
    const error = await errorOf(lifecycle.handle(taskId).progress("x"));
    expect(error).toMatchObject({ code: "version_conflict", retryable: true });
    await lifecycle.handle(taskId).progress("y");
    expect(await lifecycle.getTask(taskId)).toMatchObject({ statusMessage: "y" });
  });

  test("two engines on one store write the same task without losing anything", async () => {
    const store = new MemoryTaskStore();
    const owner = startEngine({ store });
    const other = startEngine({ store });
    const { taskId } = await owner.lifecycle.createTask();
    const task = owner.lifecycle.handle(taskId);
    const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`);
    const asking = keys.map((key) => task.requestInput({ [key]: question(key) }));
    await vi.waitFor(async () =>
      expect(Object.keys((await store.get(taskId))?.inputs ?? {})).toHaveLength(keys.length),
    );
    const talking = Promise.all(keys.map((key) => task.progress(key)));
    await Promise.all(keys.map((key) => other.lifecycle.updateTask(taskId, { [key]: accepted({ key }) })));
    await talking;
    expect(await Promise.all(asking)).toEqual(keys.map((key) => ({ [key]: accepted({ key }) })));
  });
});

describe("progress", () => {
  test("calls made while a write is under way are merged into one more write, and the last is never lost", async () => {
    const patches: unknown[] = [];
    const writing = gate();
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: async ({ method, patch }) => {
        if (method !== "update") return;
        patches.push(patch);
        if (patches.length === 1) await writing.opened;
      },
    });
    const { lifecycle } = startEngine({ store });
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const first = task.progress("first");
    await vi.waitFor(() => expect(patches).toHaveLength(1));
    const later = Array.from({ length: 100 }, (_, done) => task.progress({ done }));
    writing.open();
    await Promise.all([first, ...later]);
    expect(patches).toMatchObject([{ progress: { message: "first" } }, { progress: { done: 99 } }]);
  });

  // CASES part 2, engine: "write amplification: each progress() rewrites the whole record".
  test("a write names only what it changes", async () => {
    const patches: object[] = [];
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ patch }) => void (patch === undefined || patches.push(patch)),
    });
    const { lifecycle } = startEngine({ store });
    const { taskId } = await lifecycle.createTask({
      work: { tool: "render", arguments: { big: "x".repeat(10_000) } },
    });
    const task = lifecycle.handle(taskId);
    await task.progress({ message: "Page", done: 3, total: 9 });
    await task.saveCheckpoint({ page: 3 });
    await lifecycle.cancelTask(taskId);
    expect(patches.map((patch) => Object.keys(patch).toSorted())).toEqual([
      ["lastUpdatedAt", "progress", "statusMessage"],
      ["checkpoint", "lastUpdatedAt"],
      ["cancelRequestedAt", "lastUpdatedAt"],
    ]);
  });

  test("a read that fails once does not silence the calls after it", async () => {
    let failing = false;
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ method }) => {
        if (failing && method === "get") throw new LongJobsError("store_unavailable", "The store is away.");
      },
    });
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const task = engine.lifecycle.handle(taskId);
    failing = true;
    const early = task.progress("early");
    await vi.waitFor(() => expect(takeErrors(engine)).toMatchObject([{ code: "store_unavailable" }]));
    failing = false;
    await Promise.all([early, task.progress("kept")]);
    expect(await engine.lifecycle.getTask(taskId)).toMatchObject({ statusMessage: "kept" });
  });

  test("a message, a share, or both become the status message; what is left out is gone", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const shown = async (progress: Parameters<typeof task.progress>[0]): Promise<string | undefined> => {
      await task.progress(progress);
      return (await lifecycle.getTask(taskId)).statusMessage;
    };
    expect(await shown("Reading")).toBe("Reading");
    expect(await shown({ message: "Page", done: 999, total: 1000 })).toBe("Page: 999 of 1000 (99 %)");
    expect(await shown({ done: 3 })).toBe("3");
    expect(await shown({ done: 0, total: 0 })).toBe("0");
    expect(await shown({})).toBeUndefined();
    expect(Object.keys(await lifecycle.getTask(taskId))).not.toContain("statusMessage");
  });

  test.each([
    null,
    5,
    { done: Number.NaN },
    { done: -1 },
    { total: Infinity },
    { done: "3" },
    { message: 5 },
  ])("%j is a TypeError, and nothing is written", async (progress) => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const before = await store.get(taskId);
    expect(await errorOf(lifecycle.handle(taskId).progress(progress as never))).toBeInstanceOf(TypeError);
    expect(await store.get(taskId)).toBe(before);
  });
});

test("lastUpdatedAt never goes back, also when the clock does", async () => {
  const clock = startClock();
  const { lifecycle } = startEngine({ now: clock.now });
  const { taskId, lastUpdatedAt } = await lifecycle.createTask();
  clock.advance(-60_000);
  await lifecycle.handle(taskId).progress("x");
  expect((await lifecycle.getTask(taskId)).lastUpdatedAt).toBe(lastUpdatedAt);
});

test("a task that vanished during a conflict is unknown_task, and its worker hears that it expired", async () => {
  const inner = new MemoryTaskStore();
  let vanish = false;
  const store = faultyTaskStore(inner, {
    before: ({ method, taskId = "" }) => {
      if (method === "update" && vanish) throw storeErrors.versionConflict(taskId, 1, 2);
    },
  });
  const getting = vi.spyOn(store, "get");
  const { lifecycle } = startEngine({ store, random: () => 0 });
  const { taskId } = await lifecycle.createTask();
  const task = lifecycle.handle(taskId);
  vanish = true;
  getting.mockImplementationOnce((id) => inner.get(id)).mockResolvedValue(undefined);
  expect(await codeOf(task.progress("x"))).toBe("unknown_task");
  expect(task.signal.reason).toMatchObject({ code: "expired" });
});

test("a handler that awaits nothing crashes nothing when its calls are refused", async () => {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", listener);
  const { lifecycle } = startEngine();
  const { taskId } = await lifecycle.createTask();
  const task = lifecycle.handle(taskId);
  await task.complete({});
  void task.progress("late");
  void task.saveCheckpoint(1);
  void task.requestInput({ late: question() });
  await nextTurn();
  await nextTurn();
  process.off("unhandledRejection", listener);
  expect(unhandled).toEqual([]);
});

test("a store that throws where it should reject is survived by the housekeeping, and reported", async () => {
  vi.useFakeTimers();
  const inner = new MemoryTaskStore();
  const store: TaskStore = {
    create: (record) => inner.create(record),
    get: (taskId) => inner.get(taskId),
    update: (taskId, patch, version) => inner.update(taskId, patch, version),
    sweep: () => {
      throw new Error("no promise");
    },
    close: () => inner.close(),
  };
  const engine = startEngine({ store, sweepIntervalMs: 1_000 });
  await engine.lifecycle.createTask();
  await vi.advanceTimersByTimeAsync(2_500);
  expect(takeErrors(engine)).toHaveLength(2);
});
