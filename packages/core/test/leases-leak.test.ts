import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { expect, test, vi } from "vitest";

import { isTerminal, MemoryTaskStore } from "../src/index.ts";
import { takeErrors } from "./support/engine.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { recordOf } from "./support/killed-task.ts";
import { startWorker, untilAborted, type Worker, type WorkerTool } from "./support/worker.ts";

const leaseMs = 30_000;
const retentionMs = 60_000;
const warmUp = 5;
const batches = 20;
const batchSize = 500;

/** The heap after a full collection, in bytes. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

const tools: { readonly [tool: string]: WorkerTool } = {
  quick: { handler: async (task) => task.progress("half").then(() => ({ done: true })) },
  long: { handler: (task) => (task.attempt === 1 ? untilAborted(task) : { by: task.attempt }) },
  once: { onInterrupted: "fail", handler: untilAborted },
};

const idle = {
  attempts: 0,
  handlers: 0,
  queuedRuns: 0,
  lateOutcomes: 0,
  queuedWrites: 0,
  watchedTasks: 0,
  watchedOwners: 0,
};

/** One task on its way through two engines, each in one of five ways. */
async function oneLife(owner: Worker, other: Worker, store: MemoryTaskStore, way: number): Promise<string> {
  const task = await owner.call(["quick", "long", "long", "once", "long"][way] ?? "quick");
  const { taskId } = task;
  const give = async (): Promise<void> => {
    const { version } = await recordOf(store, taskId);
    await store.update(taskId, { lease: undefined }, version);
  };
  if (way === 1) await other.lifecycle.cancelTask(taskId);
  // Taken over by the other's recovery, to be run there, to be ended there, and to be cancelled there.
  if (way >= 2) await give();
  if (way === 4) await other.lifecycle.cancelTask(taskId);
  return taskId;
}

test("after 10,000 tasks that were run, cancelled, taken over and expired on two engines nothing is left: no entry, no timer, no heap", async () => {
  vi.useFakeTimers();
  const store = new MemoryTaskStore();
  const options = { store, retentionMs, leaseMs };
  const owner = startWorker({ ...options, tools });
  const other = startWorker({ ...options, tools });
  let timers = 0;
  let beforeBytes = 0;
  const lives: string[] = [];
  for (let batch = 1; batch <= warmUp + batches; batch += 1) {
    const taskIds = await Promise.all(
      Array.from({ length: batchSize }, (_, index) => oneLife(owner, other, store, index % 5)),
    );
    await other.lifecycle.recover();
    await vi.advanceTimersByTimeAsync(1_000);
    for (const taskId of taskIds) lives.push((await recordOf(store, taskId)).status);
    for (const taskId of taskIds) await other.lifecycle.getTask(taskId);
    await vi.advanceTimersByTimeAsync(20 * leaseMs + retentionMs);
    for (const worker of [owner, other]) {
      worker.starts.length = 0;
      expect(worker.lifecycle.stats).toEqual(idle);
    }
    expect(store.size).toBe(0);
    // The baseline: by then every timer of the engines has been started, and the code is compiled.
    if (batch === warmUp) {
      timers = vi.getTimerCount();
      beforeBytes = heapBytes();
    }
  }
  expect(lives.filter((status) => !isTerminal(status as never))).toEqual([]);
  expect(new Set(lives)).toEqual(new Set(["completed", "failed", "cancelled"]));
  expect(vi.getTimerCount()).toBe(timers);
  lives.length = 0;
  const grownBytes = heapBytes() - beforeBytes;
  process.stdout.write(
    `${batches * batchSize} tasks on two engines: ${timers} timers before and after, heap ${(beforeBytes / 2 ** 20).toFixed(1)} MiB ${(grownBytes / 2 ** 10).toFixed(0)} KiB more\n`,
  );
  // A single map entry per task, of the smallest kind, would be 1 MiB.
  expect(grownBytes).toBeLessThan(2 ** 20);
  for (const worker of [owner, other]) expect(takeErrors(worker)).toEqual([]);
});

test("an instance that is asked about 2,000 tasks of others forgets each when it has ended, on a store of five methods", async () => {
  vi.useFakeTimers();
  const inner = new MemoryTaskStore();
  const store = fiveMethods(inner);
  const owner = startWorker({ store, tools });
  const asked = startWorker({ store, tools });
  const tasks = await Promise.all(Array.from({ length: 2_000 }, () => owner.call("long")));
  const ask = (): Promise<unknown> => Promise.all(tasks.map(({ taskId }) => asked.lifecycle.getTask(taskId)));
  await ask();
  expect(asked.lifecycle.stats.watchedOwners).toBe(2_000);
  for (const { taskId } of tasks) await owner.lifecycle.cancelTask(taskId);
  await vi.advanceTimersByTimeAsync(0);
  expect(await ask()).toMatchObject(tasks.map(() => ({ status: "cancelled" })));
  expect(asked.lifecycle.stats).toEqual(idle);
  expect(owner.lifecycle.stats).toEqual(idle);
});
