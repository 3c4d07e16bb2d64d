import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskHandle, type TaskStore } from "../src/index.ts";
import { startEngine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { killedTask, recordOf } from "./support/killed-task.ts";
import { question } from "./support/questions.ts";
import { withLostHints, withoutWatch } from "./support/spied-store.ts";
import { startWorker } from "./support/worker.ts";

const leaseMs = 30_000;

const stores: readonly (readonly [string, () => TaskStore])[] = [
  ["the memory store", () => new MemoryTaskStore()],
  ["a store without watch", () => withoutWatch(new MemoryTaskStore())],
  ["a store whose hints are lost", () => withLostHints(new MemoryTaskStore())],
  ["a store of five methods", () => fiveMethods(new MemoryTaskStore())],
];

const writes: readonly (readonly [string, (task: TaskHandle) => Promise<unknown>])[] = [
  ["progress", (task) => task.progress("late")],
  ["saveCheckpoint", (task) => task.saveCheckpoint({ late: true })],
  ["requestInput", (task) => task.requestInput({ late: question() })],
  ["resumeInput", (task) => task.resumeInput()],
  ["complete", (task) => task.complete({ late: true })],
  ["fail", (task) => task.fail({ code: -32_000, message: "late" })],
  ["cancelled", (task) => task.cancelled("late")],
];

/** What somebody who took the task over has written. */
async function takeAway(store: TaskStore, taskId: string): Promise<void> {
  const { version } = await recordOf(store, taskId);
  await store.update(taskId, { lease: { owner: "new", token: "new", durationMs: leaseMs } }, version);
}

describe.each(stores)("a stale token on %s (P17)", (_name, newStore) => {
  test.each(writes)(
    "%s is refused with lease_lost, changes nothing, and the signal fires",
    async (_method, write) => {
      const store = newStore();
      const { lifecycle } = startEngine({ store });
      const { taskId } = await lifecycle.createTask();
      const task = lifecycle.handle(taskId);
      await takeAway(store, taskId);
      const taken = await recordOf(store, taskId);
      const refused = codeOf(write(task));
      expect(await refused).toBe("lease_lost");
      await vi.waitFor(() => expect(task.signal.reason).toMatchObject({ code: "lease_lost" }));
      expect(await store.get(taskId)).toBe(taken);
      expect(lifecycle.stats.attempts).toBe(0);
      // And every other write after it.
      for (const [, again] of writes) expect(await codeOf(again(task))).toBe("lease_lost");
      expect(await store.get(taskId)).toBe(taken);
    },
  );

  test("the heartbeat extends nothing, and tells the worker", async () => {
    vi.useFakeTimers();
    const store = newStore();
    const { lifecycle } = startEngine({ store, retentionMs: 1 });
    const { taskId } = await lifecycle.createTask();
    const { signal } = lifecycle.handle(taskId);
    await takeAway(store, taskId);
    const taken = await recordOf(store, taskId);
    await vi.advanceTimersByTimeAsync(leaseMs / 3);
    expect(signal.reason).toMatchObject({ code: "lease_lost" });
    expect(await store.get(taskId)).toBe(taken);
  });

  test("a release gives back nothing", async () => {
    const store = newStore();
    const worker = startWorker({ store: store, tools: { crawl: {} } });
    const { taskId } = await worker.call("crawl");
    await takeAway(store, taskId);
    const taken = await recordOf(store, taskId);
    await worker.lifecycle.close();
    expect(await store.get(taskId)).toBe(taken);
  });

  test("the outcome of a handler is dropped, however it ended", async () => {
    for (const end of [() => ({ late: true }), () => Promise.reject(new Error("late"))]) {
      const store = newStore();
      const { lifecycle } = startEngine({ store });
      const { taskId } = await lifecycle.createTask();
      const running = lifecycle.run(lifecycle.handle(taskId), async () => {
        await takeAway(store, taskId);
        return end();
      });
      expect(await running).toMatchObject({ status: "abandoned" });
      expect(await recordOf(store, taskId)).toMatchObject({ status: "working", lease: { token: "new" } });
    }
  });
});

describe("each acquisition has a token of its own (P17)", () => {
  test.each([
    ["create, acquire and acquire again by one engine on the memory store", () => new MemoryTaskStore()],
    ["the same on a store of five methods", () => fiveMethods(new MemoryTaskStore())],
  ])("%s", async (_what, newStore) => {
    const store: TaskStore = newStore();
    const { lifecycle } = startEngine({ store });
    const { taskId } = await lifecycle.createTask();
    const tokens = new Set<string | undefined>();
    const owners = new Set<string | undefined>();
    for (let acquisition = 1; acquisition <= 10; acquisition += 1) {
      const { attempt, lease, version } = await recordOf(store, taskId);
      expect(attempt).toBe(acquisition);
      tokens.add(lease?.token);
      owners.add(lease?.owner);
      await store.update(taskId, { lease: undefined }, version);
      await lifecycle.acquire(taskId);
    }
    expect(tokens.size).toBe(10);
    expect(owners.size, "by one and the same owner").toBe(1);
    await lifecycle.handle(taskId).complete({});
  });

  test("recovery's too", async () => {
    vi.useFakeTimers();
    const store = new MemoryTaskStore();
    const taskId = await killedTask(store);
    const tokens = [(await recordOf(store, taskId)).lease?.token];
    for (let life = 0; life < 3; life += 1) {
      await vi.advanceTimersByTimeAsync(leaseMs);
      const worker = startWorker({ store, tools: { crawl: { maxAttempts: 99 } } });
      await worker.lifecycle.recover();
      tokens.push((await recordOf(store, taskId)).lease?.token);
      worker.die();
    }
    expect(new Set(tokens).size).toBe(4);
  });
});

test("two attempts of one process do not share their rights: the older is refused what the newer may", async () => {
  const store = new MemoryTaskStore();
  const { lifecycle } = startEngine({ store });
  const { taskId } = await lifecycle.createTask();
  const older = lifecycle.handle(taskId);
  const { version } = await recordOf(store, taskId);
  await store.update(taskId, { lease: undefined }, version);
  const newer = await lifecycle.acquire(taskId);
  expect(older.signal.reason).toMatchObject({ code: "lease_lost" });
  expect(await codeOf(older.saveCheckpoint(1))).toBe("lease_lost");
  await newer.saveCheckpoint(2);
  expect(lifecycle.handle(taskId)).toBe(newer);
  expect(newer.signal.aborted).toBe(false);
  await newer.complete({});
});
