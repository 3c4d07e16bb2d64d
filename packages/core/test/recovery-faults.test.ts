import { faultyTaskStore } from "@longjobs/conformance";
import { beforeEach, describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, type TaskRunner } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { killedTask, recordOf } from "./support/killed-task.ts";
import { spiedStore } from "./support/spied-store.ts";
import { gate } from "./support/turns.ts";
import { startWorker, untilAborted } from "./support/worker.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;

beforeEach(() => {
  vi.useFakeTimers();
});

describe("writes that go wrong on the way", () => {
  test("a begin whose reply was lost is recognised: one run, one attempt counted", async () => {
    const inner = new MemoryTaskStore();
    const taskId = await killedTask(inner);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const store = faultyTaskStore(inner, {
      after: ({ method, count }) => {
        if (method === "update" && count === 1)
          throw new LongJobsError("store_unavailable", "The reply was lost.");
      },
    });
    const worker = startWorker({ store, tools: { crawl: {} } });
    expect(await worker.lifecycle.recover()).toBe(1);
    expect(worker.starts).toMatchObject([{ task: { attempt: 2 } }]);
    expect(await recordOf(inner, taskId)).toMatchObject({ attempt: 2, crashes: 1 });
  });

  test("a begin that fails is told, and the task is taken again when that lease has lapsed", async () => {
    const inner = new MemoryTaskStore();
    const taskId = await killedTask(inner);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const spied = spiedStore(inner);
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    spied.disturb(({ method }) => {
      if (method === "update") throw new LongJobsError("store_unavailable", "Away.");
    });
    expect(await worker.lifecycle.recover()).toBe(1);
    expect(takeErrors(worker)).toMatchObject([{ code: "store_unavailable" }]);
    spied.disturb(undefined);
    expect(worker.lifecycle.stats.attempts).toBe(0);
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(worker.starts).toMatchObject([{ task: { taskId, attempt: 2 } }]);
    expect(await recordOf(inner, taskId)).toMatchObject({ crashes: 1 });
  });

  test("one task that cannot be ended keeps no other from its end (P13)", async () => {
    const inner = new MemoryTaskStore();
    const taskIds = [await killedTask(inner), await killedTask(inner), await killedTask(inner)];
    const client = startEngine({ store: inner });
    for (const taskId of taskIds) await client.lifecycle.cancelTask(taskId);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const spied = spiedStore(inner);
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    spied.disturb(({ method, taskId }) => {
      if (method === "update" && taskId === taskIds[1])
        throw new LongJobsError("record_too_large", "Too large.");
    });
    expect(await worker.lifecycle.recover()).toBe(3);
    expect(takeErrors(worker)).toMatchObject([{ code: "record_too_large" }]);
    const statuses = await Promise.all(taskIds.map(async (taskId) => (await recordOf(inner, taskId)).status));
    expect(statuses).toEqual(["cancelled", "working", "cancelled"]);
  });

  test("a claim whose reply was lost costs a lease, and no crash", async () => {
    const inner = new MemoryTaskStore();
    const taskId = await killedTask(inner);
    await vi.advanceTimersByTimeAsync(leaseMs);
    await inner.claim("reply lost", leaseMs, { limit: 1 });
    const worker = startWorker({ store: inner, tools: { crawl: {} } });
    expect(await worker.lifecycle.recover()).toBe(0);
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(await recordOf(inner, taskId)).toMatchObject({ attempt: 2, crashes: 1 });
  });

  test.each([
    ["begin", "resume"],
    ["end", "fail"],
  ] as const)(
    "a task that somebody else took between claim and %s is let go, in silence",
    async (_step, onInterrupted) => {
      const inner = new MemoryTaskStore();
      const taskId = await killedTask(inner);
      await vi.advanceTimersByTimeAsync(leaseMs);
      const spied = spiedStore(inner);
      const worker = startWorker({ store: spied.store, tools: { crawl: { onInterrupted } } });
      spied.disturb(async ({ method }) => {
        if (method !== "get") return;
        spied.disturb(undefined);
        const record = await recordOf(inner, taskId);
        await inner.update(
          taskId,
          { lease: { owner: "x", token: "y", durationMs: leaseMs } },
          record.version,
        );
      });
      await worker.lifecycle.recover();
      expect(worker.starts).toEqual([]);
      expect(worker.lifecycle.stats.attempts).toBe(0);
      expect(await recordOf(inner, taskId)).toMatchObject({ status: "working", lease: { token: "y" } });
    },
  );

  test("a lease that took almost its whole time to get is given up on time all the same", async () => {
    const inner = new MemoryTaskStore();
    await killedTask(inner);
    const spied = spiedStore(inner);
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    await vi.advanceTimersByTimeAsync(leaseMs - beatMs / 2);
    await worker.lifecycle.recover();
    // Now the lease ends in the middle between two beats.
    await vi.advanceTimersByTimeAsync(beatMs / 2);
    const slow = gate();
    const recovering = worker.lifecycle.recover();
    spied.disturb(({ method }) => (method === "update" ? slow.opened : undefined));
    await vi.advanceTimersByTimeAsync(leaseMs - 100);
    spied.disturb(({ method }) => {
      if (method === "renew") throw new LongJobsError("store_unavailable", "Away.");
    });
    slow.open();
    await vi.advanceTimersByTimeAsync(99);
    await recovering;
    const [start] = worker.starts;
    expect(start?.task.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(start?.task.signal.reason).toMatchObject({ code: "lease_lost" });
    spied.disturb(undefined);
    takeErrors(worker);
  });
});

describe("a runner that fails", () => {
  test.each<[string, TaskRunner["start"]]>([
    [
      "throws",
      () => {
        throw new Error("No such tool.");
      },
    ],
    ["rejects", () => Promise.reject(new Error("No such tool."))],
  ])("because it %s is told, and the task is given back", async (_how, start) => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const rules = new Map([["crawl", { onInterrupted: "resume" as const, maxAttempts: 3 }]]);
    const engine = startEngine({ store, runner: { tools: () => rules, start } });
    // Until it is given up: a task that is given back is free at once.
    await engine.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(0);
    expect(takeErrors(engine)).toMatchObject([{ message: "No such tool." }]);
    const record = await recordOf(store, taskId);
    expect(record).not.toHaveProperty("lease");
    expect(record).toMatchObject({ released: true, crashes: 1 });
    expect(engine.lifecycle.stats.attempts).toBe(0);
  });

  test("because it has no such tool any more has its task given back", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const rules = new Map([["crawl", { onInterrupted: "resume" as const, maxAttempts: 3 }]]);
    const engine = startEngine({
      store,
      runner: {
        tools: () => rules,
        start: async () => ({ status: "abandoned", reason: new Error("No such tool.") }),
      },
    });
    await engine.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(0);
    expect(await recordOf(store, taskId)).not.toHaveProperty("lease");
    expect(engine.lifecycle.stats.attempts).toBe(0);
  });

  test("because its engine closed before the handler could begin is nothing to tell, and the task is free", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const rules = new Map([["crawl", { onInterrupted: "resume" as const, maxAttempts: 3 }]]);
    const read = gate();
    const engine = startEngine({
      store,
      runner: {
        tools: () => rules,
        start: async (task) => {
          await read.opened;
          return engine.lifecycle.run(task, untilAborted);
        },
      },
    });
    await engine.lifecycle.recover();
    const closing = engine.lifecycle.close();
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    read.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(await recordOf(store, taskId)).toMatchObject({ released: true });
  });

  test("because the attempt has ended before its handler could begin is nothing to tell", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const rules = new Map([["crawl", { onInterrupted: "resume" as const, maxAttempts: 3 }]]);
    const engine = startEngine({
      store,
      runner: {
        tools: () => rules,
        start: async (task) => {
          await engine.lifecycle.cancelTask(taskId, { atOnce: true });
          return engine.lifecycle.run(task, untilAborted);
        },
      },
    });
    await engine.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(0);
    expect(await recordOf(store, taskId)).toMatchObject({ status: "cancelled" });
  });
});

test("a result that waits for its store is written before anybody takes the task, however long the store was away", async () => {
  // Whatever part of a beat, of a lease and of a pause between two tries it comes back in.
  const around = Array.from({ length: 15 }, (_, index) => 60_000 + index * 3_701);
  for (const awayMs of [...around, 10 * 60_000 + 1, 17 * 60_000]) {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const finished = gate();
    const tools = {
      pay: { onInterrupted: "fail" as const, handler: () => finished.opened.then(() => ({ hours: 3 })) },
    };
    const owner = startWorker({ store: spied.store, tools });
    const { taskId } = await owner.call("pay");
    const other = startWorker({ store: spied.store, tools });
    await other.lifecycle.recover();
    spied.disturb(() => {
      throw new LongJobsError("store_unavailable", "Away.", { retryable: true });
    });
    finished.open();
    await vi.advanceTimersByTimeAsync(awayMs);
    spied.disturb(undefined);
    await vi.advanceTimersByTimeAsync(2 * leaseMs);
    expect(await recordOf(inner, taskId)).toMatchObject({ status: "completed", result: { hours: 3 } });
    for (const engine of [owner, other]) takeErrors(engine);
  }
});
