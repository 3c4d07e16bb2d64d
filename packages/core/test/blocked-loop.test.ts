import { expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskHandler } from "../src/index.ts";
import { codeOf } from "./support/errors.ts";
import { recordOf } from "./support/killed-task.ts";
import { question } from "./support/questions.ts";
import { countCalls, spiedStore } from "./support/spied-store.ts";
import { gate, nextTurn } from "./support/turns.ts";
import { startWorker } from "./support/worker.ts";

const leaseMs = 300;

/** Really blocks the event loop: no timer, no promise, no heartbeat runs meanwhile. */
function block(durationMs: number): void {
  const endsAtMs = performance.now() + durationMs;
  while (performance.now() < endsAtMs);
}

test("a loop that is blocked for three leases loses its task to another engine: the signal fires, late writes are refused, one outcome", async () => {
  const spied = spiedStore(new MemoryTaskStore());
  const tried = gate();
  const other = startWorker({
    store: spied.store,
    leaseMs,
    tools: { crunch: { handler: ({ attempt }) => tried.opened.then(() => ({ by: attempt })) } },
  });
  const refused: string[] = [];
  const handler: TaskHandler = async (task) => {
    await nextTurn();
    block(3 * leaseMs);
    // The other engine looks before this one has noticed anything.
    await other.lifecycle.recover();
    for (const write of [
      () => task.progress("late"),
      () => task.saveCheckpoint("late"),
      () => task.complete({ by: "late" }),
      () => task.fail({ code: -32_000, message: "late" }),
      () => task.requestInput({ late: question() }),
    ]) {
      refused.push(await codeOf(write));
    }
    return { by: "late" };
  };
  const owner = startWorker({ store: spied.store, leaseMs, tools: { crunch: { handler } } });
  const task = owner.lifecycle.begin({ work: { tool: "crunch" } });
  await task.promote();
  const outcome = await owner.lifecycle.run(task, handler);
  expect(outcome).toMatchObject({ status: "abandoned", reason: { code: "lease_lost" } });
  expect(task.signal.reason).toMatchObject({ code: "lease_lost" });
  expect(refused).toEqual(Array.from({ length: 5 }, () => "lease_lost"));
  tried.open();
  await vi.waitFor(async () =>
    expect(await recordOf(spied.store, task.taskId)).toMatchObject({
      status: "completed",
      result: { by: 2 },
    }),
  );
  const ends = spied
    .take()
    .filter(({ patch }) => patch?.status === "completed" && patch.result !== undefined);
  expect(ends.map(({ patch }) => patch?.result)).toEqual([{ by: 2 }]);
});

test("the engine that was blocked notices by itself, and never runs the task beside its own earlier handler", async () => {
  const spied = spiedStore(new MemoryTaskStore());
  const log: string[] = [];
  const stubborn = gate();
  const worker = startWorker({
    store: spied.store,
    leaseMs,
    tools: {
      crunch: {
        handler: async ({ attempt, signal }) => {
          log.push(`begin ${attempt}`);
          if (attempt === 1) {
            await nextTurn();
            block(3 * leaseMs);
            await vi.waitFor(() => expect(signal.reason).toMatchObject({ code: "lease_lost" }));
            await stubborn.opened;
          }
          log.push(`end ${attempt}`);
          return { by: attempt };
        },
      },
    },
  });
  const { taskId } = await worker.call("crunch");
  await vi.waitFor(() => expect(worker.starts).toHaveLength(1), { timeout: 10_000 });
  expect(log).toEqual(["begin 1"]);
  spied.take();
  // Long after: the lease of the attempt that waits is kept alive.
  await vi.waitFor(() => expect(countCalls(spied.take())["renew"]).toBeGreaterThan(0), { timeout: 10_000 });
  expect(log).toEqual(["begin 1"]);
  stubborn.open();
  await vi.waitFor(async () =>
    expect(await recordOf(spied.store, taskId)).toMatchObject({ status: "completed", result: { by: 2 } }),
  );
  expect(log).toEqual(["begin 1", "end 1", "begin 2", "end 2"]);
});

test("work that blocked the loop until it was done keeps its result, while nobody has taken the task", async () => {
  const store = new MemoryTaskStore();
  const handler: TaskHandler = () => {
    block(3 * leaseMs);
    return { done: true };
  };
  const worker = startWorker({ store, leaseMs, tools: { crunch: { handler, onInterrupted: "fail" } } });
  const { taskId } = await worker.call("crunch");
  await vi.waitFor(async () =>
    expect(await recordOf(store, taskId)).toMatchObject({ status: "completed", result: { done: true } }),
  );
  expect(worker.starts).toEqual([]);
});
