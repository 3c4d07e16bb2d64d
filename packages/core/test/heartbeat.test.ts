import { beforeEach, describe, expect, test, vi } from "vitest";

import {
  LongJobsError,
  MemoryTaskStore,
  type TaskRecord,
  type TaskRunner,
  type TaskStore,
} from "../src/index.ts";
import { startEngine, takeErrors, type Engine } from "./support/engine.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { countCalls, shared, spiedStore, withLostHints, withoutWatch } from "./support/spied-store.ts";
import { gate } from "./support/turns.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;

beforeEach(() => {
  vi.useFakeTimers();
});

async function createTasks({ lifecycle }: Engine, count: number): Promise<string[]> {
  const taskIds: string[] = [];
  for (let made = 0; made < count; made += 1) taskIds.push((await lifecycle.createTask()).taskId);
  return taskIds;
}

/** What somebody else writes. */
async function write(store: TaskStore, taskId: string, patch: object): Promise<void> {
  const record = await store.get(taskId);
  await store.update(taskId, patch, (record as TaskRecord).version);
}

function away(): never {
  throw new LongJobsError("store_unavailable", "Away.", { retryable: true });
}

function never(): Promise<void> {
  return new Promise(() => undefined);
}

describe("the heartbeat of 1,000 running tasks", () => {
  test("is one call of renew per interval, with every lease in it, and no other call", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const taskIds = await createTasks(engine, 1_000);
    spied.take();
    for (let beat = 1; beat <= 5; beat += 1) {
      await vi.advanceTimersByTimeAsync(beatMs);
      const calls = spied.take();
      expect(countCalls(calls)).toEqual({ renew: 1 });
      expect(calls[0]?.leaseMs).toBe(leaseMs);
      expect(calls[0]?.leases?.map(({ taskId }) => taskId)).toEqual(taskIds);
    }
  });

  test("looks at each once in six intervals, for a hint that was lost", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    await createTasks(engine, 1_000);
    spied.take();
    await vi.advanceTimersByTimeAsync(12 * beatMs);
    expect(countCalls(spied.take())).toEqual({ renew: 12, get: 2_000 });
  });

  test("leaves out what has ended, and costs nothing when nothing runs", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [first = "", second = ""] = await createTasks(engine, 2);
    await engine.lifecycle.handle(first).complete({});
    spied.take();
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(spied.take()[0]?.leases?.map(({ taskId }) => taskId)).toEqual([second]);
    await engine.lifecycle.handle(second).complete({});
    spied.take();
    await vi.advanceTimersByTimeAsync(5 * beatMs);
    expect(spied.take()).toEqual([]);
  });

  test("keeps the leases for hours", async () => {
    const store = new MemoryTaskStore();
    const engine = startEngine({ store });
    const [taskId = ""] = await createTasks(engine, 1);
    const task = engine.lifecycle.handle(taskId);
    for (let minute = 0; minute < 180; minute += 1) {
      await vi.advanceTimersByTimeAsync(60_000);
      expect(await store.claim("stranger", leaseMs, { limit: 1 })).toEqual([]);
    }
    expect(task.signal.aborted).toBe(false);
    await task.complete({});
  });
});

describe("a renewal that is refused tells the worker at that beat, and why", () => {
  const lease = { owner: "another", token: "another", durationMs: leaseMs };
  const finishedBy = "another";
  test.each([
    ["taken over", { lease }, "lease_lost"],
    ["cancelled by another", { status: "cancelled", finishedBy, lease: undefined }, "cancelled"],
    [
      "ended by another",
      { status: "failed", error: { code: 1, message: "x" }, finishedBy, lease: undefined },
      "lease_lost",
    ],
    ["expired", { ttlMs: 1 }, "expired"],
  ])("a task that was %s", async (_what, patch, code) => {
    const inner = new MemoryTaskStore();
    // Without hints, and at a beat without a look: only the renewal can tell.
    const engine = startEngine({ store: withLostHints(inner), sweepIntervalMs: null });
    const [taskId = "", kept = ""] = await createTasks(engine, 2);
    const { signal } = engine.lifecycle.handle(taskId);
    await vi.advanceTimersByTimeAsync(beatMs - 1);
    await write(inner, taskId, patch);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.reason).toMatchObject({ code });
    expect(engine.lifecycle.handle(kept).signal.aborted, "the others live on").toBe(false);
    expect(engine.lifecycle.stats.attempts).toBe(1);
  });

  test("also when the record cannot be read then", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(withLostHints(inner));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    await write(inner, taskId, { lease });
    spied.disturb(({ method }) => (method === "get" ? away() : undefined));
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    expect(takeErrors(engine)).toMatchObject([{ code: "store_unavailable" }]);
  });

  test("of a task that its own worker has ended in that moment means nothing", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const task = engine.lifecycle.handle(taskId);
    spied.disturb(async ({ method }) => {
      if (method === "renew") await task.complete({ done: true });
    });
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(await inner.get(taskId)).toMatchObject({ status: "completed" });
    expect(task.signal.aborted).toBe(false);
    expect(engine.lifecycle.stats.attempts).toBe(0);
  });
});

describe("a lease that cannot be renewed is given up here, a lease after the last good renewal was sent", () => {
  test.each([
    ["fails", away],
    ["hangs", never],
  ])("when the store %s from then on", async (_what, disturbance) => {
    const spied = spiedStore(shared(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    await vi.advanceTimersByTimeAsync(beatMs);
    spied.disturb(disturbance);
    await vi.advanceTimersByTimeAsync(leaseMs - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    // Each failed or hanging renewal is told, and each one is tried anew.
    const told = takeErrors(engine);
    expect(told.length).toBeGreaterThanOrEqual(2);
    for (const error of told) expect(error).toMatchObject({ code: "store_unavailable", retryable: true });
    spied.disturb(undefined);
  });

  test("counted from when it was sent, however late the answer came", async () => {
    const spied = spiedStore(shared(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    spied.disturb(
      () =>
        new Promise((resolve) => {
          setTimeout(resolve, beatMs / 2);
        }),
    );
    await vi.advanceTimersByTimeAsync(beatMs + beatMs / 2);
    spied.disturb(never);
    await vi.advanceTimersByTimeAsync(leaseMs - beatMs / 2 - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    spied.disturb(undefined);
    takeErrors(engine);
  });

  test("and an answer that comes after those of later renewals takes nothing back", async () => {
    const spied = spiedStore(shared(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    const first = gate();
    spied.disturb(({ method, count }) => (method === "renew" && count === 1 ? first.opened : undefined));
    await vi.advanceTimersByTimeAsync(3 * beatMs + beatMs / 2);
    expect(takeErrors(engine), "the first one").toMatchObject([{ code: "store_unavailable" }]);
    first.open();
    spied.disturb(({ method }) => (method === "renew" ? away() : undefined));
    await vi.advanceTimersByTimeAsync(leaseMs - beatMs / 2 - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    takeErrors(engine);
  });

  test.each([
    ["with renew", (store: TaskStore) => store],
    ["with the five methods", fiveMethods],
  ])(
    "not for an outage that is shorter, however it lies between two beats: a store %s",
    async (_name, of) => {
      const spied = spiedStore(of(shared(new MemoryTaskStore())));
      const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
      const [taskId = ""] = await createTasks(engine, 1);
      const { signal } = engine.lifecycle.handle(taskId);
      for (const offsetMs of [1, beatMs / 2, beatMs - 1]) {
        await vi.advanceTimersByTimeAsync(2 * beatMs + offsetMs);
        spied.disturb(away);
        await vi.advanceTimersByTimeAsync(leaseMs / 2);
        spied.disturb(undefined);
        await vi.advanceTimersByTimeAsync(3 * beatMs - offsetMs);
        expect(signal.aborted).toBe(false);
      }
      // To the next beat: from a renewal that was good to one that is just in time.
      await vi.advanceTimersByTimeAsync(beatMs / 2);
      spied.disturb(away);
      await vi.advanceTimersByTimeAsync(leaseMs - leaseMs / 12 - 1);
      spied.disturb(undefined);
      await vi.advanceTimersByTimeAsync(leaseMs);
      expect(signal.aborted).toBe(false);
      takeErrors(engine);
    },
  );

  test("an outage makes nothing but the renewals more frequent", async () => {
    const spied = spiedStore(withoutWatch(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    await createTasks(engine, 100);
    await vi.advanceTimersByTimeAsync(beatMs);
    spied.take();
    spied.disturb(away);
    await vi.advanceTimersByTimeAsync(2 * beatMs);
    expect(countCalls(spied.take())).toEqual({ renew: 6, get: 2 * 100 });
    spied.disturb(undefined);
    takeErrors(engine);
  });

  test("one heartbeat that fails is tried again without the others, on a store with the five methods", async () => {
    const spied = spiedStore(fiveMethods(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [first] = await createTasks(engine, 100);
    spied.disturb(({ method, taskId }) => (method === "update" && taskId === first ? away() : undefined));
    await vi.advanceTimersByTimeAsync(beatMs);
    spied.take();
    await vi.advanceTimersByTimeAsync(beatMs - 1);
    const updated = spied.take().flatMap(({ method, taskId }) => (method === "update" ? [taskId] : []));
    expect(updated).toEqual([first, first, first]);
    spied.disturb(undefined);
    takeErrors(engine);
  });

  test("a store that answers again in time is renewed again: nothing was lost", async () => {
    const spied = spiedStore(shared(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const task = engine.lifecycle.handle(taskId);
    for (const disturbance of [away, never]) {
      spied.disturb(({ method }) => (method === "renew" ? disturbance() : undefined));
      await vi.advanceTimersByTimeAsync(beatMs);
      spied.disturb(undefined);
      await vi.advanceTimersByTimeAsync(5 * leaseMs);
    }
    expect(task.signal.aborted).toBe(false);
    await task.complete({});
    takeErrors(engine);
  });

  test.each([
    ["the wall clock is set forward", { wall: leaseMs, monotonic: 0 }],
    ["the monotonic clock alone went on", { wall: 0, monotonic: leaseMs }],
  ])("when %s by a lease", async (_what, jump) => {
    const skew = { wall: 0, monotonic: 0 };
    const engine = startEngine({
      now: () => Date.now() + skew.wall,
      monotonicNow: () => performance.now() + skew.monotonic,
      store: shared(new MemoryTaskStore()),
    });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    await vi.advanceTimersByTimeAsync(beatMs);
    Object.assign(skew, jump);
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
  });

  test("but not when the wall clock is set back, or forward by less than a lease", async () => {
    let skewMs = 0;
    const engine = startEngine({ now: () => Date.now() + skewMs, store: shared(new MemoryTaskStore()) });
    const [taskId = ""] = await createTasks(engine, 1);
    const task = engine.lifecycle.handle(taskId);
    for (const stepMs of [-5 * 60_000, leaseMs - beatMs - 1, -leaseMs, 2 * beatMs - 1]) {
      await vi.advanceTimersByTimeAsync(leaseMs);
      skewMs += stepMs;
    }
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(task.signal.aborted).toBe(false);
    await task.complete({});
  });

  test("the work may still end its task while nobody else has taken it", async () => {
    const spied = spiedStore(shared(new MemoryTaskStore()));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const running = engine.lifecycle.run(
      engine.lifecycle.handle(taskId),
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve({ kept: true }));
        }),
    );
    spied.disturb(({ method }) => (method === "renew" ? away() : undefined));
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(await running).toMatchObject({ status: "completed", result: { kept: true } });
    expect(await engine.lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
    takeErrors(engine);
  });

  test("an attempt that nobody ends is forgotten when another has taken its task, without any hint", async () => {
    const inner = shared(new MemoryTaskStore());
    const spied = spiedStore(withLostHints(inner));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    await createTasks(engine, 1);
    spied.disturb(({ method }) => (method === "renew" ? away() : undefined));
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(engine.lifecycle.stats.attempts).toBe(1);
    await inner.claim("another", leaseMs, { limit: 1 });
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(engine.lifecycle.stats.attempts).toBe(0);
    takeErrors(engine);
  });
});

describe("in a store that belongs to this process a lease is kept, however long nobody renewed it", () => {
  test.each([
    ["fails", away],
    ["hangs", never],
  ])("while the store %s", async (_what, disturbance) => {
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    spied.disturb(disturbance);
    await vi.advanceTimersByTimeAsync(10 * leaseMs);
    expect(signal.aborted).toBe(false);
    spied.disturb(undefined);
    for (const error of takeErrors(engine)) expect(error).toMatchObject({ code: "store_unavailable" });
    // The renewal that hangs is over before the next beat.
    await vi.advanceTimersByTimeAsync(leaseMs / 4);
    await engine.lifecycle.handle(taskId).complete({});
    expect(await engine.lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
    takeErrors(engine);
  });

  test("when the machine has slept for an hour: the work goes on where it was, and nobody ends or begins it", async () => {
    let sleptMs = 0;
    const now = (): number => Date.now() + sleptMs;
    const start = vi.fn<TaskRunner["start"]>();
    const { lifecycle } = startEngine({
      store: new MemoryTaskStore({ now }),
      now,
      monotonicNow: () => performance.now() + sleptMs,
      // It looks for work that was left behind, and would end this tool's.
      runner: {
        tools: () => new Map([["crawl", { onInterrupted: "fail", maxAttempts: 3 }]]),
        start,
        dispatch: undefined,
      },
    });
    const pause = gate();
    const { taskId } = await lifecycle.createTask({ work: { tool: "crawl" } });
    const running = lifecycle.run(lifecycle.handle(taskId), async (task) => {
      await pause.opened;
      await task.saveCheckpoint({ after: "sleep" });
      return { attempt: task.attempt };
    });
    await vi.advanceTimersByTimeAsync(1_000);
    sleptMs = 60 * 60_000;
    await vi.advanceTimersByTimeAsync(2 * leaseMs);
    pause.open();
    expect(await running).toMatchObject({ status: "completed", result: { attempt: 1 } });
    expect(start).not.toHaveBeenCalled();
  });

  test("but not when the store has another owner now: the handler is told to stop", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [taskId = ""] = await createTasks(engine, 1);
    const { signal } = engine.lifecycle.handle(taskId);
    spied.disturb(() => {
      throw new LongJobsError("store_locked", "Another process has the log now.");
    });
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    for (const error of takeErrors(engine)) expect(error).toMatchObject({ code: "store_locked" });
    spied.disturb(undefined);
  });
});

describe("one task whose calls hang keeps no other from being renewed", () => {
  test("a look that never comes back", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(withoutWatch(inner));
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null });
    const [stuck = "", other = ""] = await createTasks(engine, 2);
    spied.disturb(({ method, taskId }) => (method === "get" && taskId === stuck ? never() : undefined));
    await vi.advanceTimersByTimeAsync(10 * leaseMs);
    expect(await inner.claim("stranger", leaseMs, { limit: 2 })).toEqual([]);
    spied.disturb(undefined);
    for (const taskId of [stuck, other]) await engine.lifecycle.handle(taskId).complete({});
  });
});

describe("time to live", () => {
  test("is extended by what was seen last: what is read in 30 minutes is the looks and the writes themselves", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, sweepIntervalMs: null, retentionMs: 1_000 });
    await createTasks(engine, 1);
    spied.take();
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    const calls = spied.take();
    const extensions = calls.flatMap(({ patch }) => (patch === undefined ? [] : [patch]));
    // A horizon of twenty leases, moved on when less than half of it is left.
    expect(extensions.map((patch) => Object.keys(patch).toSorted())).toEqual(
      Array.from({ length: 5 }, () => ["lastUpdatedAt", "ttlMs"]),
    );
    // 30 looks; and for each extension the read before the write, and the one after its own hint.
    expect(countCalls(calls)).toEqual({ renew: 180, update: 5, get: 30 + 2 * 5 });
  });
});

describe("cancel by another engine reaches the worker", () => {
  test("at once through watch", async () => {
    const store = new MemoryTaskStore();
    const worker = startEngine({ store });
    const client = startEngine({ store });
    const [taskId = ""] = await createTasks(worker, 1);
    const { signal } = worker.lifecycle.handle(taskId);
    await client.lifecycle.cancelTask(taskId);
    await vi.advanceTimersByTimeAsync(0);
    expect(signal.reason).toMatchObject({ code: "cancelled" });
  });

  test.each([
    ["within a beat on a store without watch", withoutWatch, 1],
    ["within six beats when the hint was lost", withLostHints, 6],
  ])("%s", async (_when, wrap, beats) => {
    const store = new MemoryTaskStore();
    const worker = startEngine({ store: wrap(store) });
    const client = startEngine({ store });
    const [taskId = ""] = await createTasks(worker, 1);
    const { signal } = worker.lifecycle.handle(taskId);
    await client.lifecycle.cancelTask(taskId);
    await vi.advanceTimersByTimeAsync(beats * beatMs);
    expect(signal.reason).toMatchObject({ code: "cancelled" });
  });
});
