import { beforeEach, describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type JsonObject, type TaskAttempt, type TaskStore } from "../src/index.ts";
import { startEngine } from "./support/engine.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { killedTask, recordOf } from "./support/killed-task.ts";
import { accepted, question } from "./support/questions.ts";
import { spiedStore } from "./support/spied-store.ts";
import { startWorker, type Worker } from "./support/worker.ts";

const leaseMs = 30_000;
const beatMs = leaseMs / 3;

beforeEach(() => {
  vi.useFakeTimers();
});

describe("a task whose process is gone", () => {
  test("is left alone until its lease has lapsed, and taken over within a beat then", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    const worker = startWorker({ store, tools: { crawl: {} } });
    await worker.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(leaseMs - 1);
    expect(await worker.lifecycle.recover()).toBe(0);
    expect(worker.starts).toEqual([]);
    await vi.advanceTimersByTimeAsync(beatMs);
    expect(worker.starts).toMatchObject([{ task: { taskId, attempt: 2 } }]);
  });

  test("with onInterrupted resume runs again: with its attempt, checkpoint, answers and arguments (P20)", async () => {
    const store = new MemoryTaskStore();
    const args = { url: "https://example.com", depth: 3, list: [1, "zwei", null] };
    const dead = startWorker({ store });
    const task = await dead.call("crawl", args);
    const before = await recordOf(store, task.taskId);
    await task.saveCheckpoint({ page: 4 });
    void task.requestInput({ size: question() });
    await vi.waitFor(async () => expect((await store.get(task.taskId))?.status).toBe("input_required"));
    dead.die();
    const client = startEngine({ store });
    expect(await client.lifecycle.updateTask(task.taskId, { size: accepted({ size: 7 }) })).toEqual(["size"]);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const asked: unknown[] = [];
    const worker = startWorker({
      store,
      tools: {
        crawl: {
          handler: async (again) => {
            asked.push(again.attempt, again.checkpoint, await again.requestInput({ size: question() }));
            return { done: true };
          },
        },
      },
    });
    expect(await worker.lifecycle.recover()).toBe(1);
    await vi.waitFor(() => expect(worker.lifecycle.stats.attempts).toBe(0));
    expect(asked).toEqual([2, { page: 4 }, { size: accepted({ size: 7 }) }]);
    expect(worker.starts[0]?.record.work).toEqual(before.work);
    expect(worker.starts[0]?.record.scope).toBe(before.scope);
    expect(await recordOf(store, task.taskId)).toMatchObject({
      status: "completed",
      attempt: 2,
      crashes: 1,
      result: { done: true },
    });
  });

  test("with onInterrupted fail is never run again: it ends as interrupted, with what was reached (P20)", async () => {
    const store = new MemoryTaskStore();
    const dead = startWorker({ store });
    const task = await dead.call("pay");
    await task.saveCheckpoint({ paid: 3 });
    dead.die();
    await vi.advanceTimersByTimeAsync(leaseMs);
    const worker = startWorker({ store, tools: { pay: { onInterrupted: "fail" } } });
    expect(await worker.lifecycle.recover()).toBe(1);
    expect(worker.starts).toEqual([]);
    const record = await recordOf(store, task.taskId);
    expect(record).toMatchObject({
      status: "failed",
      attempt: 1,
      crashes: 1,
      error: {
        code: -32_603,
        data: { reason: "interrupted", retryable: true, attempt: 1, checkpoint: { paid: 3 } },
      },
    });
    expect(record).not.toHaveProperty("lease");
  });

  test("of a tool that is not registered here is left to others, until it was left alone for orphanMaxMs", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store, "elsewhere");
    const orphanMaxMs = 60 * 60_000;
    const worker = startWorker({
      store,
      tools: { crawl: {}, pay: { onInterrupted: "fail" } },
      orphanMaxMs,
      retentionMs: 1_000,
    });
    const before = await recordOf(store, taskId);
    await worker.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(orphanMaxMs - 1);
    await worker.lifecycle.getTask(taskId);
    expect(await recordOf(store, taskId)).toBe(before);
    await vi.advanceTimersByTimeAsync(1);
    expect(await worker.lifecycle.getTask(taskId)).toMatchObject({
      status: "failed",
      error: { data: { reason: "interrupted" } },
    });
  });

  test.each([
    ["5 minutes ahead", 5 * 60_000],
    ["5 minutes behind", -5 * 60_000],
  ])("a live neighbour is left alone by an engine whose clock is %s (P16)", async (_what, skewMs) => {
    const store = new MemoryTaskStore();
    const owner = startWorker({ store, tools: { crawl: {} } });
    const { taskId, signal } = await owner.call("crawl");
    const worker = startWorker({
      store,
      tools: { crawl: {}, pay: { onInterrupted: "fail" } },
      now: () => Date.now() + skewMs,
      monotonicNow: () => performance.now() + Math.abs(skewMs),
    });
    for (let round = 0; round < 60; round += 1) {
      await vi.advanceTimersByTimeAsync(7_000);
      await worker.lifecycle.recover();
      await worker.lifecycle.getTask(taskId);
      await worker.lifecycle.endIfOrphan(taskId);
    }
    expect(worker.starts).toEqual([]);
    expect(signal.aborted).toBe(false);
    expect(await recordOf(store, taskId)).toMatchObject({ attempt: 1, status: "working" });
  });

  test("goes to one of many engines, once", async () => {
    const store = new MemoryTaskStore();
    const taskIds = await Promise.all(Array.from({ length: 30 }, () => killedTask(store)));
    await vi.advanceTimersByTimeAsync(leaseMs);
    const workers = Array.from({ length: 5 }, () => startWorker({ store, tools: { crawl: {} } }));
    const counts = await Promise.all(
      workers.flatMap(({ lifecycle }) => [lifecycle.recover(), lifecycle.recover()]),
    );
    expect(
      counts.reduce((sum, count) => sum + count, 0),
      "calls at the same time are one",
    ).toBe(60);
    const started = workers.flatMap(({ starts }) => starts.map(({ task }) => task.taskId));
    expect(started.toSorted()).toEqual(taskIds.toSorted());
  });
});

describe("a poison task (P19)", () => {
  test("is given up after maxAttempts crashes, with the reason, and is not run on later starts", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    const attempts: number[] = [];
    for (let life = 0; life < 6; life += 1) {
      await vi.advanceTimersByTimeAsync(leaseMs);
      const worker = startWorker({ store, tools: { crawl: { maxAttempts: 3 } } });
      await worker.lifecycle.recover();
      attempts.push(...worker.starts.map(({ task }) => task.attempt));
      worker.die();
    }
    expect(attempts).toEqual([2, 3]);
    expect(await recordOf(store, taskId)).toMatchObject({
      status: "failed",
      attempt: 3,
      crashes: 3,
      error: { data: { reason: "max_attempts", retryable: false, attempt: 3, crashes: 3 } },
    });
  });

  test("counts crashes and no releases: ten clean shutdowns in a row are none", async () => {
    const store = new MemoryTaskStore();
    const first = startWorker({ store, tools: { crawl: {} } });
    const { taskId } = await first.call("crawl");
    let last = first;
    for (let life = 0; life < 10; life += 1) {
      const closing = last.lifecycle.close();
      await vi.advanceTimersByTimeAsync(1_000);
      await closing;
      last = startWorker({ store, tools: { crawl: { maxAttempts: 1 } } });
      await last.lifecycle.recover();
      expect(last.starts).toMatchObject([{ task: { taskId, attempt: life + 2 } }]);
    }
    expect(await recordOf(store, taskId)).toMatchObject({ crashes: 0, status: "working" });
    last.die();
    await vi.advanceTimersByTimeAsync(leaseMs);
    const worker = startWorker({ store, tools: { crawl: { maxAttempts: 1 } } });
    await worker.lifecycle.recover();
    expect(await recordOf(store, taskId)).toMatchObject({ status: "failed", crashes: 1, attempt: 11 });
  });

  describe.each([
    ["a store that can claim", (store: TaskStore) => store],
    ["the five methods", fiveMethods],
  ])("on %s", (_name, of) => {
    const asks = { maxAttempts: 2, handler: ask };

    test("does not count processes that died while their task had long been waiting for a person", async () => {
      const store = of(new MemoryTaskStore());
      let last = startWorker({ store, tools: { crawl: asks } });
      const { taskId } = await last.call("crawl");
      for (let life = 0; life < 6; life += 1) {
        await vi.waitFor(async () => expect((await recordOf(store, taskId)).status).toBe("input_required"));
        await vi.advanceTimersByTimeAsync(10 * leaseMs);
        last.die();
        last = startWorker({ store, tools: { crawl: asks } });
        await takeOver(last, taskId);
      }
      expect(await recordOf(store, taskId)).toMatchObject({
        crashes: 0,
        attempt: 7,
        status: "input_required",
      });
      await last.lifecycle.updateTask(taskId, { size: accepted({ ok: true }) });
      await vi.waitFor(async () => expect((await recordOf(store, taskId)).status).toBe("completed"));
    });

    test("counts those that died soon after a run began, though its question was open", async () => {
      const store = of(new MemoryTaskStore());
      const first = startWorker({ store, tools: { crawl: asks } });
      const { taskId } = await first.call("crawl");
      await vi.waitFor(async () => expect((await recordOf(store, taskId)).status).toBe("input_required"));
      first.die();
      for (let life = 0; life < 3; life += 1) {
        const worker = startWorker({ store, tools: { crawl: asks } });
        await takeOver(worker, taskId);
        worker.die();
      }
      expect(await recordOf(store, taskId)).toMatchObject({ status: "failed", crashes: 2 });
    });
  });

  test("an engine that dies between the claim and the begin has crashed no run: one crash is counted, not two", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    for (let life = 0; life < 3; life += 1) {
      await vi.advanceTimersByTimeAsync(leaseMs);
      await store.claim(`died-${life}`, leaseMs, { limit: 1 });
    }
    await vi.advanceTimersByTimeAsync(leaseMs);
    const worker = startWorker({ store, tools: { crawl: { maxAttempts: 2 } } });
    await worker.lifecycle.recover();
    expect(worker.starts).toMatchObject([{ task: { attempt: 2 } }]);
    expect(await recordOf(store, taskId)).toMatchObject({ crashes: 1, attempt: 2 });
  });

  test("a released task whose next owner dies before the begin has not crashed at all", async () => {
    const store = new MemoryTaskStore();
    const first = startWorker({ store });
    const { taskId } = await first.call("crawl");
    const closing = first.lifecycle.close();
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    await store.claim("died", leaseMs, { limit: 1 });
    await vi.advanceTimersByTimeAsync(leaseMs);
    const worker = startWorker({ store, tools: { crawl: { maxAttempts: 1 } } });
    await worker.lifecycle.recover();
    expect(await recordOf(store, taskId)).toMatchObject({ crashes: 0, attempt: 2, status: "working" });
  });
});

describe("a cancelled task whose owner is dead (P13)", () => {
  test.each([
    ["of a tool that would resume", { crawl: {} }],
    ["of a tool that would fail", { crawl: { onInterrupted: "fail" as const } }],
    ["of a tool that is not known here", { other: {} }],
    ["where no tool is known", {}],
  ])("ends as cancelled and is not run, %s", async (_what, tools) => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    const client = startEngine({ store });
    await client.lifecycle.cancelTask(taskId);
    expect(await client.lifecycle.getTask(taskId), "its lease may live").toMatchObject({ status: "working" });
    const worker = startWorker({ store, tools });
    await worker.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(worker.starts).toEqual([]);
    expect(await client.lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
  });

  test("ends at once when its lease has lapsed already", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const client = startEngine({ store });
    for (let again = 0; again < 50; again += 1) await client.lifecycle.cancelTask(taskId);
    expect(await client.lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
  });

  test("ends although every place to run is taken", async () => {
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    const worker = startWorker({ store, tools: { crawl: {} }, maxConcurrentRuns: 1 });
    await worker.call("crawl");
    await worker.lifecycle.cancelTask(taskId);
    await vi.advanceTimersByTimeAsync(leaseMs + beatMs);
    expect(await worker.lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled" });
  });

  test("that is cancelled between the claim and the begin is not run", async () => {
    const inner = new MemoryTaskStore();
    const taskId = await killedTask(inner);
    await vi.advanceTimersByTimeAsync(leaseMs);
    const client = startEngine({ store: inner });
    const spied = spiedStore(inner);
    let ran = false;
    const worker = startWorker({
      store: spied.store,
      tools: {
        crawl: {
          handler: () => {
            ran = true;
            return {};
          },
        },
      },
    });
    spied.disturb(async ({ method }) => {
      if (method !== "update") return;
      spied.disturb(undefined);
      await client.lifecycle.cancelTask(taskId);
    });
    const recovering = worker.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(1_000);
    await recovering;
    expect(ran).toBe(false);
    expect(await recordOf(inner, taskId)).toMatchObject({ status: "cancelled" });
  });
});

/** Waits for a person, and does nothing else. */
async function ask(task: TaskAttempt): Promise<JsonObject> {
  return { ...(await task.requestInput({ size: question() })) };
}

/** Looks for what was left behind, as the engine and a client that polls do, until a run has begun or the lease is long over. */
async function takeOver({ lifecycle, starts }: Worker, taskId: string): Promise<void> {
  for (let beat = 0; beat < 5 && starts.length === 0; beat += 1) {
    await vi.advanceTimersByTimeAsync(beatMs);
    await lifecycle.recover();
    await lifecycle.getTask(taskId);
  }
}
