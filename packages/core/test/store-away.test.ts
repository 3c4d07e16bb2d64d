import { faultyTaskStore, type StoreCall } from "@longjobs/conformance";
import { beforeEach, describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, type TaskHandle, type TaskStore } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { accepted, question } from "./support/questions.ts";
import { shared } from "./support/spied-store.ts";
import { startWorker } from "./support/worker.ts";

const leaseMs = 30_000;

beforeEach(() => {
  vi.useFakeTimers();
});

/** A store that is away for the calls that are named, once it is told to be. */
function leavingStore(inner: TaskStore): {
  readonly store: TaskStore;
  readonly leave: (isMissed?: (call: StoreCall) => boolean) => void;
  readonly comeBack: () => void;
  readonly written: object[];
} {
  let missed: (call: StoreCall) => boolean = () => false;
  const written: object[] = [];
  const store = faultyTaskStore(inner, {
    before: (call) => {
      if (missed(call)) throw new LongJobsError("store_unavailable", "Away.", { retryable: true });
    },
    after: ({ patch }) => {
      if (patch !== undefined) written.push(patch);
    },
  });
  return {
    store,
    written,
    leave: (isMissed = () => true) => {
      missed = isMissed;
    },
    comeBack: () => {
      missed = () => false;
    },
  };
}

function savesCheckpoint({ patch }: StoreCall): boolean {
  return patch?.checkpoint !== undefined;
}

function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "resolved",
    (error: unknown) => String(error),
  );
}

const calls: { readonly [name: string]: (task: TaskHandle) => Promise<unknown> } = {
  progress: (task) => task.progress("half"),
  saveCheckpoint: (task) => task.saveCheckpoint({ page: 1 }),
  requestInput: (task) => task.requestInput({ size: question() }),
  resumeInput: (task) => task.resumeInput(),
};

describe.each(Object.entries(calls))("%s while the store is away", (_name, call) => {
  test("waits for it, and is done once when it is back before the lease lapses", async () => {
    const { comeBack, leave, store, written } = leavingStore(new MemoryTaskStore());
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const task = engine.lifecycle.handle(taskId);
    const heard = vi.fn<(value: unknown) => void>();
    leave();
    const called = call(task);
    called.then(heard, heard);
    await vi.waitFor(() => expect(engine.errors).not.toEqual([]));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(heard).not.toHaveBeenCalled();
    expect(task.signal.aborted).toBe(false);
    for (const error of takeErrors(engine)) expect(error).toMatchObject({ code: "store_unavailable" });
    comeBack();
    await vi.advanceTimersByTimeAsync(leaseMs / 3);
    expect(written.length).toBeLessThan(2);
    // The question waits for its answer; for the others there is nothing that it could answer.
    await engine.lifecycle.updateTask(taskId, { size: accepted() });
    expect(await outcomeOf(called)).toBe("resolved");
    takeErrors(engine);
  });

  test("rejects with the loss of the lease when that is over first, and writes nothing any more", async () => {
    const { comeBack, leave, store, written } = leavingStore(shared(new MemoryTaskStore()));
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    leave();
    const code = codeOf(call(engine.lifecycle.handle(taskId)));
    await vi.waitFor(() => expect(engine.errors).not.toEqual([]));
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(await code).toBe("lease_lost");
    takeErrors(engine);
    comeBack();
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(written).toEqual([]);
  });

  test("rejects with the shutdown when the engine closes, which takes no longer for it", async () => {
    const { leave, store } = leavingStore(new MemoryTaskStore());
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const task = engine.lifecycle.handle(taskId);
    leave();
    const code = codeOf(call(task));
    await vi.waitFor(() => expect(engine.errors).not.toEqual([]));
    const closed = engine.lifecycle.close({ shutdownGraceMs: 0 });
    expect(await code).toBe("shutdown");
    await vi.advanceTimersByTimeAsync(1_000);
    await closed;
    takeErrors(engine);
  });
});

test("a handler whose store is away for less than a lease notices nothing: its task has its result", async () => {
  const { comeBack, leave, store } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  const running = engine.lifecycle.run(engine.lifecycle.handle(taskId), async (task) => {
    leave();
    await task.progress("one");
    await task.saveCheckpoint({ page: 1 });
    return { pages: 1 };
  });
  await vi.advanceTimersByTimeAsync(25_000);
  comeBack();
  await vi.advanceTimersByTimeAsync(leaseMs);
  expect(await running).toMatchObject({ status: "completed", result: { pages: 1 } });
  takeErrors(engine);
});

test("a handler whose store is away for longer is run again where it was, and its task does not fail for the outage", async () => {
  const { comeBack, leave, store } = leavingStore(shared(new MemoryTaskStore()));
  const from: unknown[] = [];
  const worker = startWorker({
    store,
    tools: {
      crawl: {
        handler: async (task) => {
          from.push(task.checkpoint ?? null);
          if (task.attempt === 1) {
            await task.saveCheckpoint({ page: 1 });
            leave();
            await task.saveCheckpoint({ page: 2 });
          }
          return { from: task.checkpoint ?? null };
        },
      },
    },
  });
  const { taskId } = await worker.call("crawl");
  await vi.advanceTimersByTimeAsync(2 * leaseMs);
  comeBack();
  await vi.advanceTimersByTimeAsync(2 * leaseMs);
  expect(from).toEqual([null, { page: 1 }]);
  expect(await worker.lifecycle.getTask(taskId)).toMatchObject({
    status: "completed",
    result: { from: { page: 1 } },
  });
  takeErrors(worker);
});

test("calls that were not awaited are written in the order in which they were made", async () => {
  const { comeBack, leave, store, written } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  leave(savesCheckpoint);
  const first = task.saveCheckpoint({ page: 1 });
  await vi.advanceTimersByTimeAsync(10);
  comeBack();
  await Promise.all([first, task.saveCheckpoint({ page: 2 }), vi.advanceTimersByTimeAsync(1_000)]);
  expect(written).toMatchObject([
    { checkpoint: { value: { page: 1 } } },
    { checkpoint: { value: { page: 2 } } },
  ]);
  takeErrors(engine);
});

test("calls that were not awaited are written before the end that their handler comes to", async () => {
  const engine = startEngine();
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  const saved = task.saveCheckpoint({ page: 1 });
  const told = task.progress("all read");
  await task.complete({});
  await Promise.all([saved, told]);
  expect(await engine.lifecycle.getProgress(taskId)).toEqual({ message: "all read" });
});

test("calls that were not awaited are written before a shutdown gives the task back", async () => {
  const engine = startEngine();
  const { taskId } = await engine.lifecycle.createTask();
  const running = engine.lifecycle.run(engine.lifecycle.handle(taskId), async (task) => {
    await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
    void task.progress("stopping");
    void task.saveCheckpoint({ page: 1 });
    task.signal.throwIfAborted();
  });
  await engine.lifecycle.close();
  await running;
  expect(await engine.store.get(taskId)).toMatchObject({ checkpoint: { value: { page: 1 } } });
});

test("what waits when a handler ends its task is tried once more, at once, and does not hold up the end", async () => {
  const { leave, store, written } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  let tries = 0;
  leave((call) => savesCheckpoint(call) && (tries += 1) <= 2);
  const waiting = [task.saveCheckpoint({ page: 1 }), task.progress("all read")];
  await vi.advanceTimersByTimeAsync(300);
  expect(tries).toBe(2);
  await task.complete({});
  await Promise.all(waiting);
  expect(written).toMatchObject([
    { checkpoint: { value: { page: 1 } } },
    { progress: { message: "all read" } },
    { status: "completed" },
  ]);
  takeErrors(engine);
});

test("an end that the store refuses leaves the handler its patience", async () => {
  const { comeBack, leave, store } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  leave();
  expect(await codeOf(task.complete({}))).toBe("store_unavailable");
  const saved = task.saveCheckpoint({ page: 1 });
  await vi.advanceTimersByTimeAsync(1_000);
  comeBack();
  await vi.advanceTimersByTimeAsync(1_000);
  await saved;
  takeErrors(engine);
});

test("a cancel does not wait behind a write that waits, and ends it", async () => {
  const { leave, store } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  leave(savesCheckpoint);
  const code = codeOf(task.saveCheckpoint({ page: 1 }));
  await vi.advanceTimersByTimeAsync(10);
  await engine.lifecycle.cancelTask(taskId);
  expect(await code).toBe("cancelled");
  takeErrors(engine);
});

test("no timer is left of a call whose task has ended meanwhile", async () => {
  const { leave, store } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store, sweepIntervalMs: null });
  const idle = vi.getTimerCount();
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  leave(savesCheckpoint);
  const code = codeOf(task.saveCheckpoint({ page: 1 }));
  await vi.advanceTimersByTimeAsync(10);
  await task.complete({});
  expect(await code).toBe("store_unavailable");
  expect(vi.getTimerCount()).toBeLessThanOrEqual(idle + 1);
  takeErrors(engine);
});

test("one failure of each call is reported, however often it is tried", async () => {
  const { leave, store } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  leave(savesCheckpoint);
  const saving = engine.lifecycle.handle(taskId).saveCheckpoint({ page: 1 });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(takeErrors(engine)).toHaveLength(1);
  await engine.lifecycle.cancelTask(taskId);
  expect(await codeOf(saving)).toBe("cancelled");
});

test("tasks that lose their store at one moment do not all ask for it at another", async () => {
  const { leave, store } = leavingStore(new MemoryTaskStore());
  const engine = startEngine({ store });
  const triedAt = new Map<number, number>();
  leave((call) => {
    if (!savesCheckpoint(call)) return false;
    triedAt.set(Date.now(), (triedAt.get(Date.now()) ?? 0) + 1);
    return true;
  });
  for (let made = 0; made < 100; made += 1) {
    const { taskId } = await engine.lifecycle.createTask();
    void engine.lifecycle.handle(taskId).saveCheckpoint({ page: 1 });
  }
  await vi.advanceTimersByTimeAsync(10);
  const [together = 0] = triedAt.values();
  expect(together).toBe(100);
  triedAt.clear();
  await vi.advanceTimersByTimeAsync(250);
  expect(triedAt.size).toBeGreaterThan(20);
  takeErrors(engine);
});

test("what the store refuses for good is told at once", async () => {
  const store = faultyTaskStore(new MemoryTaskStore(), {
    before: ({ patch }) => {
      if (patch?.checkpoint !== undefined) throw new LongJobsError("no_space", "Full.", { retryable: true });
    },
  });
  const { lifecycle } = startEngine({ store });
  const { taskId } = await lifecycle.createTask();
  expect(await codeOf(lifecycle.handle(taskId).saveCheckpoint(1))).toBe("no_space");
});
