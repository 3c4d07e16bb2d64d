import { describe, expect, test, vi } from "vitest";

import { isExpired, MemoryTaskStore } from "../src/index.ts";
import { extendedTtlMs, finalTtlMs, initialTtlMs } from "../src/task-retention.ts";
import { startEngine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { bareRecord } from "./support/records.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

/** Checks, as polls do, that the end of the task is ahead of now. */
function expectAlive({
  createdAt,
  ttlMs,
}: {
  readonly createdAt: string;
  readonly ttlMs: number | null;
}): void {
  expect(Date.parse(createdAt) + (ttlMs ?? Infinity)).toBeGreaterThan(Date.now());
}

describe("nothing is evicted at work (P22)", () => {
  test("a retention of a minute outlives a run of three hours, and then counts from the end", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine({ retentionMs: minute });
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    for (let passed = 0; passed < 180; passed += 1) {
      await vi.advanceTimersByTimeAsync(minute);
      expectAlive(await lifecycle.getTask(taskId));
    }
    await task.complete({ done: true });
    await vi.advanceTimersByTimeAsync(minute - 1_000);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
    // The end never moves nearer: what was promised while it ran stays promised.
    await vi.advanceTimersByTimeAsync(20 * minute);
    expect(await codeOf(lifecycle.getTask(taskId))).toBe("unknown_task");
  });

  test("a worker that dies leaves at least ten lease durations for a take-over, however late in the run", async () => {
    vi.useFakeTimers();
    const leaseMs = 30_000;
    for (const ranMs of [1, 7 * minute, 33 * minute, 200 * minute]) {
      const store = new MemoryTaskStore();
      const first = startEngine({ store, retentionMs: 1_000, leaseMs });
      const { taskId } = await first.lifecycle.createTask();
      await vi.advanceTimersByTimeAsync(ranMs);
      await first.lifecycle.close({ shutdownGraceMs: 0 });
      const second = startEngine({ store, retentionMs: 1_000, leaseMs });
      await vi.advanceTimersByTimeAsync(10 * leaseMs - leaseMs / 3);
      const task = await second.lifecycle.acquire(taskId);
      await vi.advanceTimersByTimeAsync(60 * minute);
      await task.complete({});
      expect(await second.lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
      await second.lifecycle.close({ shutdownGraceMs: 0 });
    }
  });

  test("the end that polls see is never in the past, also in the middle of a take-over", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine({ retentionMs: 1, leaseMs: 100 });
    const { taskId } = await lifecycle.createTask();
    for (let step = 0; step < 500; step += 1) {
      await vi.advanceTimersByTimeAsync(17);
      expectAlive(await lifecycle.getTask(taskId));
    }
    expect(lifecycle.handle(taskId).signal.aborted).toBe(false);
  });

  // CASES part 2, engine: "TTL extended by B, A's waiter still rejects TaskNotFoundError though the task is alive".
  test("an end that somebody else moved is believed: waiters and workers ask the store before they give up", async () => {
    vi.useFakeTimers();
    const store = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store, retentionMs: 1_000, leaseMs: 100 });
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const waiting = lifecycle.waitForChange(taskId, { timeoutMs: 10 * minute });
    const record = await store.get(taskId);
    await store.update(taskId, { ttlMs: day }, record?.version ?? 0);
    expect(await waiting).toMatchObject({ status: "working", ttlMs: day });
    await vi.advanceTimersByTimeAsync(5 * minute);
    expect(task.signal.aborted).toBe(false);
    await task.complete({});
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed", ttlMs: day });
  });
});

describe("an expired task is unknown", () => {
  test("its retention after its end, and a sweep then deletes it", async () => {
    vi.useFakeTimers();
    const store = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store, retentionMs: day, sweepIntervalMs: null });
    const { taskId } = await lifecycle.createTask();
    await lifecycle.handle(taskId).complete({});
    await vi.advanceTimersByTimeAsync(day - 1);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
    await vi.advanceTimersByTimeAsync(1);
    expect(await codeOf(lifecycle.getTask(taskId))).toBe("unknown_task");
    expect(await codeOf(lifecycle.updateTask(taskId, {}))).toBe("unknown_task");
    expect(await codeOf(lifecycle.cancelTask(taskId))).toBe("unknown_task");
    expect(store.size).toBe(1);
    expect(await lifecycle.sweep()).toBe(1);
    expect(store.size).toBe(0);
  });

  // CASES part 2, engine: "sweeper off by default".
  test("sweeping is on by default: what has expired is gone within the interval", async () => {
    vi.useFakeTimers();
    const store = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store, retentionMs: minute });
    for (let made = 0; made < 100; made += 1) {
      const { taskId } = await lifecycle.createTask();
      await lifecycle.handle(taskId).complete({});
    }
    await vi.advanceTimersByTimeAsync(20 * minute);
    expect(store.size).toBe(0);
  });

  // CASES part 2, engine: "TTL expiry does not abort a worker that is not parked".
  test.each(["working", "parked"])(
    "a %s attempt whose task is gone hears of it: the signal says expired",
    async (kind) => {
      vi.useFakeTimers();
      const store = new MemoryTaskStore();
      const { lifecycle } = startEngine({ store });
      const { taskId } = await lifecycle.createTask();
      const task = lifecycle.handle(taskId);
      const asking = kind === "parked" ? task.requestInput({ a: { method: "roots/list" } }) : undefined;
      if (asking !== undefined) {
        await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
      }
      const record = await store.get(taskId);
      await store.update(taskId, { ttlMs: 1 }, record?.version ?? 0);
      await vi.advanceTimersByTimeAsync(10_000);
      expect(task.signal.reason).toMatchObject({ code: "expired" });
      if (asking !== undefined) expect(await codeOf(asking)).toMatch(/^(?:expired|unknown_task)$/);
      expect(await codeOf(task.complete({}))).toBe("unknown_task");
    },
  );
});

describe("long times (P24)", () => {
  test("a task of 30 days neither expires at once nor a millisecond early", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine({ retentionMs: 30 * day, sweepIntervalMs: day });
    const { taskId, ttlMs } = await lifecycle.createTask();
    expect(ttlMs).toBe(30 * day);
    await lifecycle.handle(taskId).complete({});
    await vi.advanceTimersByTimeAsync(30 * day - 1);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
    await vi.advanceTimersByTimeAsync(1);
    expect(await codeOf(lifecycle.getTask(taskId))).toBe("unknown_task");
  });

  test("null keeps a task for ever", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine({ sweepIntervalMs: day, leaseMs: 3 * day });
    const endless = await lifecycle.createTask({ ttlMs: null });
    expect(endless.ttlMs).toBeNull();
    await lifecycle.handle(endless.taskId).complete({});
    await vi.advanceTimersByTimeAsync(400 * day);
    expect(await lifecycle.getTask(endless.taskId)).toMatchObject({ status: "completed", ttlMs: null });
  });
});

describe("the arithmetic", () => {
  test.each([
    [day, 30_000, undefined, day],
    [1, 30_000, undefined, 600_000],
    [day, 30_000, 2 * day, 2 * day],
    [day, 30_000, 5, day],
    [day, 30_000, null, null],
    [null, 30_000, 5, null],
  ])("a new task: retention %s, lease %s, wished %s → %s", (retentionMs, leaseMs, least, ttlMs) => {
    expect(initialTtlMs(retentionMs, leaseMs, least)).toBe(ttlMs);
  });

  test("a running task is extended when less than half is left, and not before", () => {
    const record = bareRecord({ ttlMs: 1_000_000, retentionMs: 1_000_000 });
    const bornAt = Date.parse(record.createdAt);
    expect(extendedTtlMs(record, 100, bornAt)).toBeUndefined();
    expect(extendedTtlMs(record, 100, bornAt + 500_000)).toBeUndefined();
    expect(extendedTtlMs(record, 100, bornAt + 500_001)).toBe(1_500_001);
    expect(extendedTtlMs({ ...record, ttlMs: null }, 100, bornAt + 10 ** 9)).toBeUndefined();
  });

  test("an ending task keeps what it had, or gets its retention from now; a clock that went back counts as now", () => {
    const record = bareRecord({ ttlMs: 1_000_000, retentionMs: 300_000 });
    const bornAt = Date.parse(record.createdAt);
    expect(finalTtlMs(record, bornAt + 1_000)).toBe(1_000_000);
    expect(finalTtlMs(record, bornAt + 900_000)).toBe(1_200_000);
    expect(finalTtlMs(record, bornAt - 900_000)).toBe(1_000_000);
    expect(finalTtlMs({ ...record, ttlMs: null }, bornAt)).toBeNull();
  });

  test("a task expires exactly at its age, and never with null", () => {
    expect(isExpired(0, 10, 9)).toBe(false);
    expect(isExpired(0, 10, 10)).toBe(true);
    expect(isExpired(0, null, Number.MAX_SAFE_INTEGER)).toBe(false);
  });
});
