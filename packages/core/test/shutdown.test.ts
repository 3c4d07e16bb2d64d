import { beforeEach, describe, expect, test, vi } from "vitest";

import {
  LongJobsError,
  MemoryTaskStore,
  storeErrors,
  type CloseOptions,
  type TaskStore,
} from "../src/index.ts";
import { startEngine, takeErrors, type Engine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { killedTask, recordOf } from "./support/killed-task.ts";
import { spiedStore } from "./support/spied-store.ts";
import { gate } from "./support/turns.ts";
import { startWorker, untilAborted } from "./support/worker.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;

beforeEach(() => {
  vi.useFakeTimers();
});

function never(): Promise<never> {
  return new Promise(() => undefined);
}

function inTime(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Closes an engine, and resolves to how long that took on the clock. */
async function closeIn({ lifecycle }: Engine, options: CloseOptions): Promise<number> {
  const beganAtMs = performance.now();
  const tookMs: number[] = [];
  void lifecycle.close(options).then(() => tookMs.push(performance.now() - beganAtMs));
  while (tookMs.length === 0) await vi.advanceTimersByTimeAsync(10);
  return tookMs[0] ?? Infinity;
}

const stores: readonly (readonly [string, () => TaskStore])[] = [
  ["the memory store", () => new MemoryTaskStore()],
  ["a store of five methods", () => fiveMethods(new MemoryTaskStore())],
];

describe.each(stores)("close({ drainMs: 3000 }) on %s (P21)", (_name, newStore) => {
  test("returns within 3.5 s with 20 stubborn handlers; the tasks of settled ones are free at once, theirs after the grace", async () => {
    const store = newStore();
    const ended = gate();
    const worker = startWorker({
      store,
      tools: { settles: {}, stubborn: { handler: () => ended.opened.then(() => ({ late: true })) } },
    });
    const settled: string[] = [];
    const stubborn: string[] = [];
    for (let made = 0; made < 20; made += 1) {
      settled.push((await worker.call("settles")).taskId);
      stubborn.push((await worker.call("stubborn")).taskId);
    }
    // Somewhere between two heartbeats.
    await vi.advanceTimersByTimeAsync(beatMs / 2);
    const tookMs = await closeIn(worker, { drainMs: 3_000 });
    expect(tookMs).toBeGreaterThanOrEqual(3_000);
    expect(tookMs).toBeLessThanOrEqual(3_500);
    const other = startEngine({ store });
    for (const taskId of settled) expect((await other.lifecycle.acquire(taskId)).attempt).toBe(2);
    const refusals = async (): Promise<string[]> =>
      Promise.all(stubborn.map((taskId) => codeOf(other.lifecycle.acquire(taskId))));
    expect(await refusals()).toEqual(stubborn.map(() => "lease_lost"));
    // The grace began at most half a second before close returned.
    await vi.advanceTimersByTimeAsync(4_500);
    expect(await refusals()).toEqual(stubborn.map(() => "lease_lost"));
    await vi.advanceTimersByTimeAsync(500);
    for (const taskId of stubborn) expect((await other.lifecycle.acquire(taskId)).attempt).toBe(2);
    ended.open();
    await vi.waitFor(() => expect(worker.lifecycle.stats.handlers).toBe(0));
    for (const taskId of stubborn)
      expect(await recordOf(store, taskId), "what came too late is refused").toMatchObject({
        status: "working",
      });
  });

  test("writes nothing but the release for a handler that only rejected because of it", async () => {
    const store = newStore();
    const worker = startWorker({ store, tools: { crawl: {} } });
    const task = await worker.call("crawl");
    await task.progress("half");
    await task.saveCheckpoint({ page: 2 });
    const before = await recordOf(store, task.taskId);
    await closeIn(worker, {});
    expect(task.signal.reason).toMatchObject({ code: "shutdown", retryable: true });
    const { lease: _given, ...kept } = before;
    const after = await recordOf(store, task.taskId);
    expect(after).toEqual({
      ...kept,
      released: true,
      version: before.version + 1,
      lastUpdatedAt: after.lastUpdatedAt,
    });
    expect(after).not.toHaveProperty("lease");
  });
});

describe("close", () => {
  test("frees the task of a handler that stops, while it still waits for another that does not", async () => {
    const store = new MemoryTaskStore();
    const worker = startWorker({ store, tools: { crawl: {}, stubborn: { handler: never } } });
    const { taskId } = await worker.call("crawl");
    await worker.call("stubborn");
    const closing = worker.lifecycle.close();
    await vi.advanceTimersByTimeAsync(0);
    const other = startEngine({ store });
    expect(await other.lifecycle.acquire(taskId)).toMatchObject({ attempt: 2 });
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
  });

  test("keeps the result of a stubborn handler that comes within its grace", async () => {
    const store = new MemoryTaskStore();
    const ended = gate();
    const handler = (): Promise<object> => ended.opened.then(() => ({ late: true }));
    const worker = startWorker({ store, tools: { stubborn: { handler: handler as never } } });
    const { taskId } = await worker.call("stubborn");
    await closeIn(worker, {});
    await vi.advanceTimersByTimeAsync(4_000);
    ended.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(await recordOf(store, taskId)).toMatchObject({ status: "completed", result: { late: true } });
  });

  test("with a grace of nothing gives every lease back at once, beside the handler", async () => {
    const store = new MemoryTaskStore();
    const worker = startWorker({ store, tools: { stubborn: { handler: never } } });
    const { taskId } = await worker.call("stubborn");
    await closeIn(worker, { shutdownGraceMs: 0 });
    expect(await startEngine({ store }).lifecycle.acquire(taskId)).toMatchObject({ attempt: 2 });
  });

  test("does not begin what waits for a place, and frees it at once", async () => {
    const store = new MemoryTaskStore();
    let begun = 0;
    const handler = (): Promise<never> => {
      begun += 1;
      return never();
    };
    const worker = startWorker({ store, tools: { crawl: { handler } }, maxConcurrentRuns: 1 });
    await worker.call("crawl");
    const { taskId } = await worker.call("crawl");
    await closeIn(worker, { drainMs: 100 });
    expect(begun).toBe(1);
    expect(await startEngine({ store }).lifecycle.acquire(taskId)).toMatchObject({ attempt: 2 });
  });

  test.each(["hangs", "fails"] as const)("is bounded when the store %s, and tells of it", async (how) => {
    const spied = spiedStore(new MemoryTaskStore());
    const worker = startWorker({
      store: spied.store,
      tools: { crawl: {}, stubborn: { handler: never }, asks: {} },
    });
    for (const tool of ["crawl", "stubborn", "asks"]) await worker.call(tool);
    const { taskId } = await worker.lifecycle.createTask();
    const back = gate();
    spied.disturb(() => {
      if (how === "hangs") return back.opened;
      throw new LongJobsError("store_unavailable", "Away.");
    });
    const tookMs = await closeIn(worker, { drainMs: 3_000 });
    expect(tookMs).toBeLessThanOrEqual(3_500);
    const told = takeErrors(worker);
    expect(told.length).toBeGreaterThan(0);
    for (const error of told) expect(error).toMatchObject({ code: "store_unavailable" });
    expect(worker.lifecycle.stats.attempts).toBe(0);
    expect(await codeOf(worker.lifecycle.getTask(taskId))).toBe("store_closed");
    back.open();
  });

  test("that follows a renewal which was under way holds a stubborn handler's lease for the grace alone", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const worker = startWorker({ store: spied.store, tools: { stubborn: { handler: never } } });
    const { taskId } = await worker.call("stubborn");
    spied.disturb(({ method, leaseMs: wishedMs }) =>
      method === "renew" && wishedMs === leaseMs ? inTime(300) : undefined,
    );
    await vi.advanceTimersByTimeAsync(beatMs - 1);
    const closing = closeIn(worker, {});
    await closing;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await startEngine({ store: inner }).lifecycle.acquire(taskId)).toMatchObject({ attempt: 2 });
  });

  test("leaves no timer behind, whatever was under way", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const worker = startWorker({ store: spied.store, tools: { crawl: {}, stubborn: { handler: never } } });
    await worker.call("crawl");
    await worker.lifecycle.createTask();
    const renewal = gate();
    spied.disturb(({ method }) => (method === "renew" ? renewal.opened : undefined));
    await vi.advanceTimersByTimeAsync(beatMs);
    await closeIn(worker, {});
    spied.disturb(undefined);
    renewal.open();
    await vi.advanceTimersByTimeAsync(0);
    takeErrors(worker);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("leaves no timer behind when a renewal comes back while leases are being given back", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const worker = startWorker({ store: spied.store, tools: { stubborn: { handler: never } } });
    await worker.call("stubborn");
    spied.disturb(({ method }) => (method === "renew" ? inTime(300) : undefined));
    await vi.advanceTimersByTimeAsync(beatMs - 20);
    await closeIn(worker, {});
    spied.disturb(undefined);
    await vi.advanceTimersByTimeAsync(300);
    takeErrors(worker);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("keeps the process awake until it is done, as nothing else may", async () => {
    vi.useRealTimers();
    const worker = startWorker({ store: new MemoryTaskStore(), tools: { stubborn: { handler: never } } });
    await worker.call("stubborn");
    const started = vi.spyOn(globalThis, "setTimeout");
    const closing = worker.lifecycle.close({ drainMs: 50 });
    const [timer] = started.mock.results.map(({ value }) => value as NodeJS.Timeout);
    expect(timer?.hasRef()).toBe(true);
    await closing;
    started.mockRestore();
  });
});

describe("what is under way when an engine closes begins no more", () => {
  test.each(["claim", "update"] as const)(
    "a recovery that waits for %s: its task is free at once",
    async (slow) => {
      const inner = new MemoryTaskStore();
      const taskId = await killedTask(inner);
      await vi.advanceTimersByTimeAsync(leaseMs);
      const spied = spiedStore(inner);
      const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
      const answer = gate();
      spied.disturb(({ method, options }) =>
        method === slow && options?.tools?.length !== 0 ? answer.opened : undefined,
      );
      const recovering = worker.lifecycle.recover();
      await vi.advanceTimersByTimeAsync(0);
      const closing = worker.lifecycle.close({ drainMs: 1_000 });
      answer.open();
      await vi.advanceTimersByTimeAsync(1_000);
      await Promise.all([closing, recovering]);
      expect(worker.starts).toEqual([]);
      expect(worker.lifecycle.stats.attempts).toBe(0);
      const record = await recordOf(inner, taskId);
      expect(record).toMatchObject({ released: true, crashes: 1 });
      expect(record).not.toHaveProperty("lease");
    },
  );

  test("also when the store answers only after close has returned", async () => {
    const inner = new MemoryTaskStore();
    const taskId = await killedTask(inner);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const spied = spiedStore(inner);
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    const answer = gate();
    spied.disturb(({ method }) => (method === "update" ? answer.opened : undefined));
    void worker.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(0);
    await closeIn(worker, {});
    expect(takeErrors(worker)).toMatchObject([{ code: "store_unavailable" }]);
    spied.disturb(undefined);
    answer.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(worker.starts).toEqual([]);
    expect(worker.lifecycle.stats).toMatchObject({ attempts: 0, watchedTasks: 0, handlers: 0 });
    expect(await recordOf(inner, taskId)).not.toHaveProperty("lease");
  });

  test("acquire() is refused with store_closed, and the task is free", async () => {
    const inner = new MemoryTaskStore();
    const taskId = await killedTask(inner);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const spied = spiedStore(inner);
    const { lifecycle } = startEngine({ store: spied.store });
    const answer = gate();
    spied.disturb(({ method }) => (method === "update" ? answer.opened : undefined));
    const acquiring = codeOf(lifecycle.acquire(taskId));
    await vi.advanceTimersByTimeAsync(0);
    const closing = lifecycle.close();
    answer.open();
    expect(await acquiring).toBe("store_closed");
    await closing;
    expect(await recordOf(inner, taskId)).not.toHaveProperty("lease");
  });

  test("a create that is refused late is told to whoever asked for it, and to nobody else", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const engine = startEngine({ store: spied.store });
    spied.disturb(async ({ method, record }) => {
      if (method !== "create" || record === undefined) return;
      await inTime(100);
      throw storeErrors.taskExists(record.taskId);
    });
    const code = codeOf(engine.lifecycle.createTask());
    await closeIn(engine, {});
    expect(await code).toBe("task_exists");
  });

  test("a create that is answered late is accepted, and its task is free for others", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const engine = startEngine({ store: spied.store });
    spied.disturb(({ method }) => (method === "create" ? inTime(100) : undefined));
    const creating = engine.lifecycle.createTask();
    await closeIn(engine, {});
    const { taskId } = await creating;
    expect(await recordOf(inner, taskId)).toMatchObject({ status: "working", released: true });
    expect(await recordOf(inner, taskId)).not.toHaveProperty("lease");
  });
});

test("a wait for a person ends with the reason shutdown, and the question stays for the next attempt", async () => {
  const store = new MemoryTaskStore();
  const question = { method: "elicitation/create", params: { message: "Go on?" } };
  const worker = startWorker({
    store,
    tools: { asks: { handler: async (task) => ({ given: await task.requestInput({ q: question }) }) } },
  });
  const { taskId, signal } = await worker.call("asks");
  await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
  await closeIn(worker, {});
  expect(signal.reason).toMatchObject({ code: "shutdown" });
  expect(await recordOf(store, taskId)).toMatchObject({
    status: "input_required",
    inputs: { q: { state: "open" } },
    released: true,
  });
});

test("a question that is still being prepared when the engine closes is not put any more: the reason is shutdown", async () => {
  const store = new MemoryTaskStore();
  const { lifecycle } = startEngine({ store });
  const { taskId } = await lifecycle.createTask();
  const asking = codeOf(lifecycle.handle(taskId).requestInput({ q: { method: "roots/list" } }));
  const closing = lifecycle.close();
  expect(await asking).toBe("shutdown");
  await closing;
  expect(await recordOf(store, taskId)).not.toHaveProperty("inputs");
  expect(vi.getTimerCount()).toBe(0);
});

test("a handler that stops for the shutdown by an error of its own counts as stopped, not as failed", async () => {
  const store = new MemoryTaskStore();
  const worker = startWorker({
    store,
    tools: {
      crawl: { handler: (task) => untilAborted(task).catch(() => Promise.reject(new Error("Interrupted."))) },
    },
  });
  const { taskId } = await worker.call("crawl");
  await closeIn(worker, {});
  expect(await recordOf(store, taskId)).toMatchObject({ status: "working", released: true });
});
