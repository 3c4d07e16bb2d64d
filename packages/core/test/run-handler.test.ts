import { faultyTaskStore } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, storeErrors } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { gate } from "./support/turns.ts";

// CASES part 2, tasks: "background failure swallowed: if the final update throws, status stays working and nothing is logged".
describe("a store that fails during the terminal write", () => {
  test("and recovers minutes later has the result then; every failure was reported", async () => {
    vi.useFakeTimers();
    const inner = new MemoryTaskStore();
    let away = false;
    const store = faultyTaskStore(inner, {
      before: () => {
        if (away) throw new LongJobsError("store_unavailable", "The store is away.", { retryable: true });
      },
    });
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const running = engine.lifecycle.run(engine.lifecycle.handle(taskId), () => {
      away = true;
      return { hours: "of work" };
    });
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect((await inner.get(taskId))?.status).toBe("working");
    away = false;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await running).toMatchObject({ status: "completed" });
    expect(await inner.get(taskId)).toMatchObject({ status: "completed", result: { hours: "of work" } });
    expect(takeErrors(engine).length).toBeGreaterThan(10);
  });

  test("after it had committed counts as written, also when it could not be read then: written once, outcome completed", async () => {
    vi.useFakeTimers();
    const inner = new MemoryTaskStore();
    let away = false;
    const refuse = (): void => {
      if (away) throw new LongJobsError("store_unavailable", "The store is away.");
    };
    const store = faultyTaskStore(inner, {
      before: refuse,
      after: ({ method }) => {
        if (method !== "update") return;
        away = true;
        refuse();
      },
    });
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const running = engine.lifecycle.run(engine.lifecycle.handle(taskId), () => ({ once: true }));
    await vi.advanceTimersByTimeAsync(1_000);
    away = false;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await running).toEqual({ status: "completed", result: { once: true } });
    takeErrors(engine);
  });

  test("until the engine closes is given up then: close does not hang, the handler's outcome says why", async () => {
    const inner = new MemoryTaskStore();
    const store = faultyTaskStore(inner, {
      before: ({ method }) => {
        if (method === "update") throw new LongJobsError("store_unavailable", "The store is away.");
      },
    });
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const running = engine.lifecycle.run(engine.lifecycle.handle(taskId), () => ({}));
    await vi.waitFor(() => expect(engine.errors.length).toBeGreaterThan(0));
    await engine.lifecycle.close();
    expect(await running).toMatchObject({ status: "abandoned" });
    takeErrors(engine);
  });
});

describe("a result that is too large for the store", () => {
  test("becomes an isError result that says so, and what to do", async () => {
    const store = new MemoryTaskStore({ maxRecordBytes: 20_000 });
    const { lifecycle } = startEngine({ store });
    const { taskId } = await lifecycle.createTask();
    await lifecycle.run(lifecycle.handle(taskId), () => ({ text: "x".repeat(30_000) }));
    expect(await lifecycle.getTask(taskId)).toMatchObject({
      status: "completed",
      result: {
        isError: true,
        structuredContent: { code: "record_too_large", recoveryHint: expect.any(String) },
      },
    });
  });

  test("of a failure keeps the code and the message", async () => {
    const store = new MemoryTaskStore({ maxRecordBytes: 20_000 });
    const { lifecycle } = startEngine({ store });
    const { taskId } = await lifecycle.createTask();
    await lifecycle.run(lifecycle.handle(taskId), () => {
      throw Object.assign(new Error("Broken"), { code: -32_042, data: "x".repeat(30_000) });
    });
    expect(await lifecycle.getTask(taskId)).toMatchObject({
      status: "failed",
      error: { code: -32_042, message: "Broken", data: { omitted: expect.any(String) } },
    });
  });
});

describe("a handler that ends its task itself", () => {
  test("keeps what it wrote; what it returns then is dropped", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const outcome = await lifecycle.run(lifecycle.handle(taskId), async (task) => {
      await task.complete({ mine: true });
      return { late: true };
    });
    expect(outcome).toMatchObject({ status: "abandoned" });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed", result: { mine: true } });
  });

  test("and returns nothing is no error", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const running = lifecycle.run(lifecycle.handle(taskId), (task) => task.cancelled("enough"));
    expect(await running).toMatchObject({ status: "abandoned" });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "cancelled", statusMessage: "enough" });
  });
});

test("run takes attempts of its own engine alone", async () => {
  const { lifecycle } = startEngine();
  const other = startEngine();
  const { taskId } = await lifecycle.createTask();
  const task = lifecycle.handle(taskId);
  expect(await codeOf(() => other.lifecycle.run(task, () => ({})))).toBe("lease_lost");
});

test("a result that comes after the task was taken over is dropped: nothing is written (P17)", async () => {
  const store = new MemoryTaskStore();
  const { lifecycle } = startEngine({ store });
  const { taskId } = await lifecycle.createTask();
  const working = gate();
  const running = lifecycle.run(lifecycle.handle(taskId), async () => {
    await working.opened;
    return { late: true };
  });
  const record = await store.get(taskId);
  await store.update(taskId, { lease: { owner: "x", token: "y", durationMs: 1 } }, record?.version ?? 0);
  const taken = await store.get(taskId);
  working.open();
  expect(await running).toMatchObject({ status: "abandoned", reason: { code: "lease_lost" } });
  expect(await store.get(taskId)).toBe(taken);
});

describe("close", () => {
  test("lets running work finish within the drain time", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const working = gate();
    const running = lifecycle.run(lifecycle.handle(taskId), async () => {
      await working.opened;
      return { done: true };
    });
    const closing = lifecycle.close({ drainMs: 60_000 });
    working.open();
    await closing;
    expect(await running).toMatchObject({ status: "completed" });
  });

  test("with 20 stubborn handlers returns after drain and grace (P21)", async () => {
    vi.useFakeTimers();
    const store = new MemoryTaskStore();
    const engine = startEngine({ store });
    const { lifecycle } = engine;
    const ended = gate();
    const running = [];
    const signals: AbortSignal[] = [];
    for (let made = 0; made < 20; made += 1) {
      const { taskId } = await lifecycle.createTask();
      const task = lifecycle.handle(taskId);
      signals.push(task.signal);
      running.push(lifecycle.run(task, () => ended.opened.then(() => ({ late: true }))));
    }
    let closed = false;
    void lifecycle.close({ drainMs: 1_000, shutdownGraceMs: 2_000 }).then(() => {
      closed = true;
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(signals.some(({ aborted }) => aborted)).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signals.map(({ reason }) => reason as unknown)).toMatchObject(
      Array.from({ length: 20 }, () => ({ code: "shutdown" })),
    );
    expect(closed).toBe(false);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(closed).toBe(true);
    await store.close();
    ended.open();
    const outcomes = await Promise.all(running);
    expect(outcomes.every(({ status }) => status === "abandoned")).toBe(true);
    // The store is closed by now: each late result that is lost is told.
    expect(takeErrors(engine)).toMatchObject(Array.from({ length: 20 }, () => ({ code: "store_closed" })));
  });

  test("is idempotent, and afterwards every call is store_closed and the store is still open", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    await Promise.all([lifecycle.close(), lifecycle.close({ drainMs: 5 }), lifecycle[Symbol.asyncDispose]()]);
    const calls = [
      () => lifecycle.createTask(),
      () => lifecycle.begin(),
      () => lifecycle.getTask(taskId),
      () => lifecycle.updateTask(taskId, {}),
      () => lifecycle.cancelTask(taskId),
      () => lifecycle.waitForChange(taskId),
      () => lifecycle.acquire(taskId),
      () => lifecycle.sweep(),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe("store_closed");
    expect(await store.get(taskId)).toMatchObject({ status: "working" });
    expect(storeErrors.storeClosed().code).toBe("store_closed");
  });

  test("answers clients while running work drains, and takes no new work", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const ended = gate();
    const running = lifecycle.run(lifecycle.handle(taskId), () => ended.opened.then(() => ({ done: true })));
    const closing = lifecycle.close({ drainMs: 60_000 });
    expect(await codeOf(lifecycle.createTask())).toBe("store_closed");
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    ended.open();
    expect(await running).toMatchObject({ status: "completed" });
    await closing;
    expect(await codeOf(lifecycle.getTask(taskId))).toBe("store_closed");
  });

  test("ends waits with store_closed, so that no client hangs", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const waiting = lifecycle.waitForChange(taskId);
    const refused = codeOf(waiting);
    await lifecycle.close({ shutdownGraceMs: 0 });
    expect(await refused).toBe("store_closed");
  });
});
