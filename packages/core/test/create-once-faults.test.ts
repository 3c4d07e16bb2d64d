import { faultyTaskStore, type FaultPlan, type StoreCall } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, type TaskStore } from "../src/index.ts";
import { startClock } from "./support/clock.ts";
import { startEngine } from "./support/engine.ts";
import { codedErrorOf, codeOf, errorOf } from "./support/errors.ts";
import { createNew, findAgain, keyed } from "./support/keyed.ts";
import { gate, nextTurn } from "./support/turns.ts";

const idempotencySecret = "the same secret on all instances";

/** A store whose calls go wrong by a plan; its keyed tasks need no secret of its own. */
function startFaulty(plan: FaultPlan, store: TaskStore = new MemoryTaskStore()) {
  return startEngine({ store: faultyTaskStore(store, plan), idempotencySecret });
}

function isCreate({ method }: StoreCall): boolean {
  return method === "create";
}

function connectionLost(): never {
  throw new LongJobsError("store_unavailable", "The connection was lost.", { retryable: true });
}

describe("CASES part 2, engine, ambiguous write: a create with a key", () => {
  test("that was committed, and whose reply was lost, is this call's own", async () => {
    const { lifecycle } = startFaulty({ after: (call) => (isCreate(call) ? connectionLost() : undefined) });
    const attempt = await createNew(lifecycle);
    expect((await findAgain(lifecycle)).task).toMatchObject({ taskId: attempt.taskId, status: "working" });
    await attempt.complete({});
  });

  test("that a driver sent twice is this call's own", async () => {
    const { lifecycle } = startFaulty({ repeat: isCreate });
    await (await createNew(lifecycle)).complete({});
  });

  test("that was lost leaves nothing: the call rejects, holds nothing, and its repeat creates the task", async () => {
    let broken = true;
    const { lifecycle } = startFaulty({
      before: (call) => (broken && isCreate(call) ? connectionLost() : undefined),
    });
    expect(await codeOf(() => lifecycle.createOnce(keyed()))).toBe("store_unavailable");
    expect(lifecycle.stats.attempts).toBe(0);
    broken = false;
    await (await createNew(lifecycle)).complete({});
  });

  test("that was lost, while another instance was first, gives the task of that one", async () => {
    const store = new MemoryTaskStore();
    const first = await createNew(startEngine({ store, idempotencySecret }).lifecycle);
    const { lifecycle } = startFaulty(
      { before: (call) => (isCreate(call) ? connectionLost() : undefined) },
      store,
    );
    expect((await findAgain(lifecycle)).task.taskId).toBe(first.taskId);
    await first.complete({});
  });
});

describe("a task of a key", () => {
  test("that is being created is not taken for left behind by whoever reads it meanwhile", async () => {
    const created = gate();
    const reply = gate();
    let taskId = "";
    const { lifecycle } = startFaulty({
      after: async (call) => {
        if (!isCreate(call)) return;
        taskId = call.taskId ?? "";
        created.open();
        await reply.opened;
      },
    });
    const creating = createNew(lifecycle);
    await created.opened;
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    const repeat = findAgain(lifecycle);
    reply.open();
    const attempt = await creating;
    expect((await repeat).task).toMatchObject({ taskId, status: "working" });
    expect(attempt.signal.aborted).toBe(false);
    await attempt.complete({});
  });

  test("whose create is under way makes the other calls of this instance wait: it is created once, and kept", async () => {
    const reached = gate();
    const go = gate();
    let creates = 0;
    const { lifecycle } = startFaulty({
      before: async (call) => {
        if (!isCreate(call)) return;
        creates += 1;
        reached.open();
        await go.opened;
      },
    });
    const creating = createNew(lifecycle);
    await reached.opened;
    const repeats = Array.from({ length: 10 }, () => findAgain(lifecycle));
    // Hashes are made in other threads: by now all of the repeats have theirs.
    for (let round = 0; round < 20; round += 1) {
      await crypto.subtle.digest("SHA-256", new Uint8Array(64));
      await nextTurn();
    }
    go.open();
    const attempt = await creating;
    for (const { task } of await Promise.all(repeats)) expect(task.taskId).toBe(attempt.taskId);
    expect(creates).toBe(1);
    expect(attempt.signal.aborted).toBe(false);
    expect(lifecycle.handle(attempt.taskId)).toBe(attempt);
    await attempt.complete({});
  });

  test("that expires between the refused create and the read is created anew", async () => {
    const clock = startClock();
    const memory = new MemoryTaskStore({ now: clock.now });
    const other = startEngine({ store: memory, now: clock.now, idempotencySecret, sweepIntervalMs: null });
    const first = await createNew(other.lifecycle);
    await first.complete({});
    let refused = 0;
    const store = faultyTaskStore(memory, {
      before: async (call) => {
        if (!isCreate(call)) return;
        refused += 1;
        if (refused > 1) return;
        // The store refuses, and the time of the task is over before anybody reads.
        const found = await memory.get(first.taskId);
        await memory.create(found ?? expect.fail("gone")).catch((error: unknown) => {
          clock.advance(found?.ttlMs ?? 0);
          throw error;
        });
      },
    });
    const { lifecycle } = startEngine({ store, now: clock.now, idempotencySecret, sweepIntervalMs: null });
    await (await createNew(lifecycle)).complete({});
    expect(refused).toBe(2);
  });

  test("whose id is always taken and never there ends as an error, not as an endless loop", async () => {
    const memory = new MemoryTaskStore();
    const creates = vi.fn<() => Promise<void>>(async () => {
      throw new LongJobsError("task_exists", "It is taken.");
    });
    const { lifecycle } = startEngine({
      store: Object.assign(memory, { create: creates }),
      idempotencySecret,
    });
    expect(await codeOf(() => lifecycle.createOnce(keyed()))).toBe("task_exists");
    expect(creates).toHaveBeenCalledTimes(10);
  });

  test("that vanished under its handler is created anew only when that handler has been told to stop", async () => {
    const clock = startClock();
    const { lifecycle } = startEngine({ now: clock.now, idempotencySecret, sweepIntervalMs: null });
    const first = await createNew(lifecycle);
    clock.advance((await lifecycle.getTask(first.taskId)).ttlMs ?? 0);
    const second = await createNew(lifecycle);
    expect(second.taskId).toBe(first.taskId);
    expect(first.signal.reason).toMatchObject({ code: "expired" });
    expect(await codeOf(() => first.complete({}))).toMatch(/lease_lost|unknown_task/);
    expect(lifecycle.handle(second.taskId)).toBe(second);
    await second.complete({});
  });

  test("whose process is gone is interrupted, and its hint says to use a new key", async () => {
    const store = new MemoryTaskStore();
    const dead = startEngine({ store, idempotencySecret });
    const { taskId } = await createNew(dead.lifecycle);
    await dead.lifecycle.close({ shutdownGraceMs: 0 });
    const { lifecycle } = startEngine({ store, idempotencySecret });
    await lifecycle.endIfOrphan(taskId);
    expect((await findAgain(lifecycle)).task).toMatchObject({
      taskId,
      status: "failed",
      error: {
        data: { reason: "interrupted", recoveryHint: expect.stringContaining("new idempotency key") },
      },
    });
  });

  test("whose engine has closed before its work began is another's to run", async () => {
    const { lifecycle } = startEngine({ idempotencySecret });
    const attempt = await createNew(lifecycle);
    await lifecycle.close();
    expect(await codedErrorOf(() => lifecycle.run(attempt, () => ({})))).toMatchObject({
      code: "shutdown",
      retryable: true,
    });
  });

  test("is still found while running work drains, and none is begun", async () => {
    const { lifecycle } = startEngine({ idempotencySecret });
    const work = gate();
    const attempt = await createNew(lifecycle);
    const running = lifecycle.run(attempt, async () => {
      await work.opened;
      return {};
    });
    const closing = lifecycle.close({ drainMs: 10_000 });
    expect((await findAgain(lifecycle)).task).toMatchObject({ status: "working" });
    expect(await codeOf(() => lifecycle.createOnce(keyed({ key: "k2" })))).toBe("store_closed");
    work.open();
    await running;
    await closing;
  });
});

describe("the secret", () => {
  test("is made by the first instance, kept in the store, and the same for all", async () => {
    const store = new MemoryTaskStore();
    const [one, two] = [startEngine({ store }), startEngine({ store })];
    const attempt = await createNew(one.lifecycle);
    expect((await findAgain(two.lifecycle)).task.taskId).toBe(attempt.taskId);
    expect(await store.get("longjobs.idempotency-secret")).toMatchObject({ kind: "secret", ttlMs: null });
    await attempt.complete({});
  });

  test("is no task to anybody, whoever asks for its id", async () => {
    const engine = startEngine();
    await (await createNew(engine.lifecycle)).complete({});
    const reads = vi.spyOn(engine.store, "get");
    const taskId = "longjobs.idempotency-secret";
    const { lifecycle } = engine;
    const calls = [
      () => lifecycle.getTask(taskId),
      () => lifecycle.updateTask(taskId, {}),
      () => lifecycle.cancelTask(taskId),
      () => lifecycle.acquire(taskId),
      () => lifecycle.waitForChange(taskId),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe("unknown_task");
    expect(reads).not.toHaveBeenCalled();
  });

  test("is read anew for each call: a store that was emptied has another, and the key another task", async () => {
    const inner: { now: TaskStore } = { now: new MemoryTaskStore() };
    const store: TaskStore = {
      create: (record) => inner.now.create(record),
      get: (taskId) => inner.now.get(taskId),
      update: (taskId, patch, version) => inner.now.update(taskId, patch, version),
      sweep: () => inner.now.sweep(),
      close: () => inner.now.close(),
    };
    const { lifecycle } = startEngine({ store });
    const first = await createNew(lifecycle);
    await first.complete({});
    inner.now = new MemoryTaskStore();
    const second = await createNew(lifecycle);
    expect(second.taskId).not.toBe(first.taskId);
    await second.complete({});
  });

  test("whose create was reported as failed counts all the same, and one that was lost is made anew", async () => {
    const broken = { after: true, before: false };
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ method }) => (broken.before && method === "create" ? connectionLost() : undefined),
      after: ({ method }) => (broken.after && method === "create" ? connectionLost() : undefined),
    });
    const { lifecycle } = startEngine({ store });
    await (await createNew(lifecycle)).complete({});
    const lost = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ method, count }) => (method === "create" && count === 1 ? connectionLost() : undefined),
    });
    const other = startEngine({ store: lost });
    expect(await codeOf(() => other.lifecycle.createOnce(keyed()))).toBe("store_unavailable");
    await (await createNew(other.lifecycle)).complete({});
  });

  test("that cannot be read is an error that says so, and nothing is created", async () => {
    const store = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store });
    await (await createNew(lifecycle)).complete({});
    const version = (await store.get("longjobs.idempotency-secret"))?.version ?? 0;
    await store.update("longjobs.idempotency-secret", { data: { secret: 7 } }, version);
    expect(await codeOf(() => lifecycle.createOnce(keyed({ key: "k2" })))).toBe("record_corrupt");
    expect(store.size).toBe(2);
  });

  test("of the options is used as it is, and the store keeps none", async () => {
    const store = new MemoryTaskStore();
    const attempt = await createNew(startEngine({ store, idempotencySecret }).lifecycle);
    const other = startEngine({ store, idempotencySecret });
    expect((await findAgain(other.lifecycle)).task.taskId).toBe(attempt.taskId);
    expect(store.size).toBe(1);
    await attempt.complete({});
  });

  test.each([
    ["is too short", "x".repeat(31), RangeError],
    ["is no text", 32, TypeError],
  ])("of the options that %s is refused when the engine is made", async (_kind, secret, kind) => {
    const options = { idempotencySecret: secret as string };
    expect(await errorOf(() => startEngine(options))).toBeInstanceOf(kind);
  });
});
