import { beforeEach, describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskStore } from "../src/index.ts";
import { startEngine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { countCalls, shared, spiedStore } from "./support/spied-store.ts";
import { startWorker } from "./support/worker.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;

beforeEach(() => {
  vi.useFakeTimers();
});

describe("the heartbeat on a store of five methods", () => {
  test("is one ordinary write per task and interval, which moves the version and changes nothing else", async () => {
    const inner = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store: fiveMethods(inner), sweepIntervalMs: null });
    const { taskId } = await lifecycle.createTask();
    const before = await inner.get(taskId);
    await vi.advanceTimersByTimeAsync(12 * beatMs);
    const after = await inner.get(taskId);
    expect(after).toEqual({
      ...before,
      version: (before?.version ?? 0) + 12,
    });
    expect(lifecycle.handle(taskId).signal.aborted).toBe(false);
  });

  test.each([
    ["taken over", { lease: { owner: "another", token: "another", durationMs: 1 } }, "lease_lost"],
    ["cancelled by another", { status: "cancelled", finishedBy: "another", lease: undefined }, "cancelled"],
    ["asked to stop", { cancelRequestedAt: "2026-01-01T00:00:00.000Z" }, "cancelled"],
    ["expired", { ttlMs: 1 }, "expired"],
  ] as const)("notices at the next beat a task that was %s", async (_what, patch, code) => {
    const inner = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store: fiveMethods(inner), sweepIntervalMs: null });
    const { taskId } = await lifecycle.createTask();
    const { signal } = lifecycle.handle(taskId);
    const record = await inner.get(taskId);
    await inner.update(taskId, patch, record?.version ?? 0);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(signal.reason).toMatchObject({ code });
  });

  test("of one task that hangs keeps no other from its own; the one that hangs is given up after a lease", async () => {
    const inner = shared(new MemoryTaskStore());
    const spied = spiedStore(fiveMethods(inner));
    const { lifecycle } = startEngine({ store: spied.store, sweepIntervalMs: null });
    const stuck = await lifecycle.createTask();
    const other = await lifecycle.createTask();
    const { signal } = lifecycle.handle(stuck.taskId);
    let release = (): void => undefined;
    const hanging = new Promise<void>((resolve) => {
      release = resolve;
    });
    spied.disturb(({ method, taskId }) =>
      method === "update" && taskId === stuck.taskId ? hanging : undefined,
    );
    await vi.advanceTimersByTimeAsync(leaseMs - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    await vi.advanceTimersByTimeAsync(10 * leaseMs);
    expect(lifecycle.handle(other.taskId).signal.aborted).toBe(false);
    spied.disturb(undefined);
    release();
  });
});

/** A task whose worker is gone without a word. */
async function abandoned(
  store: TaskStore,
  tool = "crawl",
): Promise<{ readonly taskId: string; readonly token: string }> {
  const dead = startWorker({ store, tools: { [tool]: {} } });
  const { taskId } = await dead.call(tool);
  dead.die();
  return { taskId, token: (await store.get(taskId))?.lease?.token ?? "" };
}

describe("without claim, whoever asks takes over what has shown no sign of life", () => {
  test("for a lease of its own time since it first saw that version, and not a moment sooner", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const { taskId, token } = await abandoned(store);
    // Dead for long, but nobody here has looked.
    await vi.advanceTimersByTimeAsync(20 * leaseMs - 1);
    const worker = startWorker({ store, tools: { crawl: {} } });
    expect(await worker.lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    await vi.advanceTimersByTimeAsync(leaseMs - 1);
    await worker.lifecycle.getTask(taskId);
    expect(worker.starts).toEqual([]);
    expect((await store.get(taskId))?.lease?.token).toBe(token);
    await vi.advanceTimersByTimeAsync(1);
    await worker.lifecycle.getTask(taskId);
    expect(worker.starts).toMatchObject([{ task: { taskId, attempt: 2 } }]);
    const record = await store.get(taskId);
    expect(record).toMatchObject({ attempt: 2, crashes: 1, status: "working" });
    expect(record?.lease?.token).not.toBe(token);
  });

  test("never while its owner lives, however often it is asked", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const owner = startWorker({ store, tools: { crawl: {} } });
    const { taskId, signal } = await owner.call("crawl");
    const worker = startWorker({ store, tools: { crawl: {} } });
    for (let second = 0; second < 600; second += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      await worker.lifecycle.getTask(taskId);
      await worker.lifecycle.endIfOrphan(taskId);
      expect(await codeOf(worker.lifecycle.acquire(taskId))).toBe("lease_lost");
    }
    expect(worker.starts).toEqual([]);
    expect(signal.aborted).toBe(false);
  });

  test("whatever the wall clock does meanwhile", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const { taskId } = await abandoned(store);
    let skewMs = 0;
    const worker = startWorker({ store, tools: { crawl: {} }, now: () => Date.now() + skewMs });
    await worker.lifecycle.getTask(taskId);
    skewMs = 10 * leaseMs;
    await worker.lifecycle.getTask(taskId);
    expect(worker.starts).toEqual([]);
    skewMs = -10 * leaseMs;
    await vi.advanceTimersByTimeAsync(leaseMs);
    await worker.lifecycle.getTask(taskId);
    expect(worker.starts).toHaveLength(1);
  });

  test("in the course of a wait too", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const { taskId } = await abandoned(store);
    const worker = startWorker({ store, tools: { crawl: { onInterrupted: "fail" } } });
    const waiting = worker.lifecycle.waitForChange(taskId, { timeoutMs: 2 * leaseMs });
    await vi.advanceTimersByTimeAsync(leaseMs + 1_000);
    expect(await waiting).toMatchObject({ status: "failed", error: { data: { reason: "interrupted" } } });
  });

  test("one of two who ask at the same time gets it", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const { taskId } = await abandoned(store);
    const workers = Array.from({ length: 4 }, () => startWorker({ store, tools: { crawl: {} } }));
    const ask = (): Promise<unknown> =>
      Promise.all(workers.map(({ lifecycle }) => lifecycle.getTask(taskId)));
    await ask();
    await vi.advanceTimersByTimeAsync(leaseMs);
    const asking = ask();
    await vi.advanceTimersByTimeAsync(1_000);
    await asking;
    expect(workers.flatMap(({ starts }) => starts)).toHaveLength(1);
    expect(await store.get(taskId)).toMatchObject({ attempt: 2 });
  });

  test("a cancelled one ends cancelled, of whatever tool; others are left to those who have the tool", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const cancelled = await abandoned(store);
    const foreign = await abandoned(store);
    const { lifecycle } = startWorker({ store, tools: { other: {} } });
    await lifecycle.cancelTask(cancelled.taskId);
    await lifecycle.getTask(foreign.taskId);
    expect(await lifecycle.getTask(cancelled.taskId)).toMatchObject({ status: "working" });
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(await lifecycle.getTask(cancelled.taskId)).toMatchObject({ status: "cancelled" });
    expect(await lifecycle.getTask(foreign.taskId)).toMatchObject({ status: "working" });
  });

  test("what was given back is free at once", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const first = startWorker({ store, tools: { crawl: {} } });
    const { taskId } = await first.call("crawl");
    const closing = first.lifecycle.close();
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    const worker = startWorker({ store, tools: { crawl: {} } });
    await worker.lifecycle.getTask(taskId);
    expect(worker.starts).toMatchObject([{ task: { taskId, attempt: 2 } }]);
    expect(await store.get(taskId)).toMatchObject({ crashes: 0 });
  });

  test("a heartbeat by write costs a read and a write, and no look besides", async () => {
    const spied = spiedStore(fiveMethods(new MemoryTaskStore()));
    const { lifecycle } = startEngine({ store: spied.store, sweepIntervalMs: null });
    await lifecycle.createTask();
    spied.take();
    await vi.advanceTimersByTimeAsync(12 * beatMs);
    expect(countCalls(spied.take())).toEqual({ get: 12, update: 12 });
  });
});
