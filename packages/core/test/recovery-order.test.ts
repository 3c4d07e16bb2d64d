import { beforeEach, describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore } from "../src/index.ts";
import { takeErrors } from "./support/engine.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { killedTask, recordOf } from "./support/killed-task.ts";
import { countCalls, spiedStore } from "./support/spied-store.ts";
import { gate } from "./support/turns.ts";
import { startWorker } from "./support/worker.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;

beforeEach(() => {
  vi.useFakeTimers();
});

describe("the order of renewing and claiming", () => {
  test("an engine renews before it claims: what lapsed on the store's clock alone stays its own", async () => {
    let storeSkewMs = 0;
    const inner = new MemoryTaskStore({ now: () => Date.now() + storeSkewMs });
    const spied = spiedStore(inner);
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    const { taskId, signal } = await worker.call("crawl");
    storeSkewMs = 2 * leaseMs;
    spied.take();
    expect(await worker.lifecycle.recover()).toBe(0);
    expect(spied.take().map(({ method }) => method)).toEqual(["renew", "claim", "claim"]);
    expect(signal.aborted).toBe(false);
    expect(await recordOf(inner, taskId)).toMatchObject({ attempt: 1 });
  });

  test("and claims nothing while that renewal hangs", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    await worker.call("crawl");
    const renewal = gate();
    spied.disturb(({ method }) => (method === "renew" ? renewal.opened : undefined));
    spied.take();
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(countCalls(spied.take())).not.toHaveProperty("claim");
    for (const error of takeErrors(worker)) expect(error).toMatchObject({ code: "store_unavailable" });
    spied.disturb(undefined);
    renewal.open();
  });

  test.each(["renew", "claim"] as const)(
    "after a failure of %s nothing is claimed for one lease",
    async (failing) => {
      const inner = new MemoryTaskStore();
      await killedTask(inner);
      const spied = spiedStore(inner);
      const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
      await worker.call("other");
      await vi.advanceTimersByTimeAsync(leaseMs - beatMs);
      spied.disturb(({ method }) => {
        if (method === failing) throw new LongJobsError("store_unavailable", "Away.", { retryable: true });
      });
      await vi.advanceTimersByTimeAsync(beatMs);
      expect(takeErrors(worker)).toMatchObject([{ code: "store_unavailable" }]);
      spied.disturb(undefined);
      spied.take();
      await vi.advanceTimersByTimeAsync(leaseMs - 1);
      expect(await worker.lifecycle.recover()).toBe(0);
      expect(countCalls(spied.take())).not.toHaveProperty("claim");
      await vi.advanceTimersByTimeAsync(beatMs);
      expect(worker.starts).toHaveLength(1);
    },
  );

  test("a claim that the store rejects is told to whoever asked for the recovery", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const worker = startWorker({ store: spied.store, tools: { crawl: {} } });
    spied.disturb(() => {
      throw new LongJobsError("store_unavailable", "Away.");
    });
    await expect(worker.lifecycle.recover()).rejects.toMatchObject({ code: "store_unavailable" });
    spied.disturb(undefined);
  });
});

describe("places to run", () => {
  test("no more is claimed than may run here; the rest is free for others, and follows as places come free", async () => {
    const store = new MemoryTaskStore();
    await Promise.all(Array.from({ length: 10 }, () => killedTask(store)));
    await vi.advanceTimersByTimeAsync(leaseMs);
    const gates = Array.from({ length: 20 }, () => gate());
    let next = 0;
    const handler = async (): Promise<object> => {
      await gates[next++]?.opened;
      return {};
    };
    const worker = startWorker({
      store,
      tools: { crawl: { handler: handler as never } },
      maxConcurrentRuns: 3,
    });
    expect(await worker.lifecycle.recover()).toBe(3);
    expect(await worker.lifecycle.recover()).toBe(0);
    const other = startWorker({ store, tools: { crawl: {} }, maxConcurrentRuns: 2 });
    expect(await other.lifecycle.recover()).toBe(2);
    gates[0]?.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(await worker.lifecycle.recover()).toBe(1);
    expect(worker.starts).toHaveLength(4);
    for (const { open } of gates) open();
  });

  test("a store of five methods is not asked to give more than may run here either", async () => {
    const store = fiveMethods(new MemoryTaskStore());
    const taskIds = await Promise.all(Array.from({ length: 5 }, () => killedTask(store)));
    const worker = startWorker({ store, tools: { crawl: {} }, maxConcurrentRuns: 2 });
    for (const taskId of taskIds) await worker.lifecycle.getTask(taskId);
    await vi.advanceTimersByTimeAsync(leaseMs);
    for (const taskId of taskIds) await worker.lifecycle.getTask(taskId);
    expect(worker.starts).toHaveLength(2);
    expect(worker.lifecycle.stats.queuedRuns).toBe(0);
  });

  test("tasks that are only ended need no place: 250 of them in one recovery", async () => {
    const store = new MemoryTaskStore();
    const dead = startWorker({ store });
    for (let made = 0; made < 250; made += 1) await dead.call("pay");
    dead.die();
    await vi.advanceTimersByTimeAsync(leaseMs);
    const worker = startWorker({ store, tools: { pay: { onInterrupted: "fail" } }, maxConcurrentRuns: 1 });
    expect(await worker.lifecycle.recover()).toBe(250);
  });
});

describe("never beside an earlier handler of the same process", () => {
  test("a task that was lost and comes back waits until the old handler has come to its end", async () => {
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const log: string[] = [];
    const stubborn = gate();
    const worker = startWorker({
      store: spied.store,
      tools: {
        crawl: {
          handler: async (task) => {
            log.push(`begin ${task.attempt}`);
            if (task.attempt === 1) await stubborn.opened;
            log.push(`end ${task.attempt}`);
            return { by: task.attempt };
          },
        },
      },
    });
    const { taskId, signal } = await worker.call("crawl");
    spied.disturb(({ method }) => {
      if (method === "renew") throw new LongJobsError("store_unavailable", "Away.", { retryable: true });
    });
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    spied.disturb(undefined);
    takeErrors(worker);
    await vi.advanceTimersByTimeAsync(3 * leaseMs);
    expect(worker.starts, "this engine has it again").toMatchObject([{ task: { attempt: 2 } }]);
    expect(log, "and waits").toEqual(["begin 1"]);
    expect(worker.lifecycle.handle(taskId).signal.aborted, "its lease is kept meanwhile").toBe(false);
    stubborn.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(log).toEqual(["begin 1", "end 1", "begin 2", "end 2"]);
    expect(await recordOf(inner, taskId)).toMatchObject({ status: "completed", result: { by: 2 } });
  });

  test.each(["cancelled", "lost"] as const)("one that was %s while it waited is not begun", async (how) => {
    const inner = new MemoryTaskStore();
    const worker = startWorker({ store: inner });
    const stubborn = gate();
    const log: number[] = [];
    const { taskId } = await worker.lifecycle.createTask();
    const old = worker.lifecycle.handle(taskId);
    const running = worker.lifecycle.run(old, async () => {
      await stubborn.opened;
      return { by: 1 };
    });
    const record = await recordOf(inner, taskId);
    await inner.update(taskId, { lease: undefined }, record.version);
    await vi.advanceTimersByTimeAsync(0);
    const again = await worker.lifecycle.acquire(taskId);
    const next = worker.lifecycle.run(again, (task) => {
      log.push(task.attempt);
      return { by: 2 };
    });
    if (how === "cancelled") await worker.lifecycle.cancelTask(taskId);
    else {
      const held = await recordOf(inner, taskId);
      await inner.update(taskId, { lease: { owner: "x", token: "y", durationMs: leaseMs } }, held.version);
      await vi.advanceTimersByTimeAsync(0);
    }
    stubborn.open();
    await running;
    expect(await next).toMatchObject({ status: how === "cancelled" ? "cancelled" : "abandoned" });
    expect(log).toEqual([]);
  });
});
