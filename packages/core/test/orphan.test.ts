import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore } from "../src/index.ts";
import { startClock } from "./support/clock.ts";
import { startEngine } from "./support/engine.ts";
import { codedErrorOf, codeOf } from "./support/errors.ts";
import { orphanTask } from "./support/orphan.ts";
import { accepted, question } from "./support/questions.ts";

describe("a working task that nobody holds", () => {
  test("ends as interrupted when its work cannot be run again", async () => {
    const { store, taskId } = await orphanTask((task) => task.saveCheckpoint({ page: 3 }));
    const { lifecycle } = startEngine({ store });
    const task = await lifecycle.endIfOrphan(taskId);
    expect(task).toMatchObject({
      status: "failed",
      error: {
        code: -32_603,
        data: {
          reason: "interrupted",
          retryable: true,
          recoveryHint: expect.any(String),
          attempt: 1,
          checkpoint: { page: 3 },
        },
      },
    });
    expect((task as { error: { message: string } }).error.message).toBe(task.statusMessage);
    expect(await store.get(taskId)).not.toHaveProperty("lease");
    expect(await lifecycle.endIfOrphan(taskId)).toEqual(task);
  });

  test("asking about it changes nothing: that is for whoever can run it", async () => {
    const { store, taskId } = await orphanTask();
    const { lifecycle } = startEngine({ store });
    const before = await store.get(taskId);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    await lifecycle.waitForChange(taskId, { timeoutMs: 0 });
    expect(await store.get(taskId)).toBe(before);
  });

  test("ends once, whoever is first of 20", async () => {
    const { store, taskId } = await orphanTask();
    const [first, second] = [startEngine({ store }), startEngine({ store })];
    const before = await store.get(taskId);
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? first : second).lifecycle.endIfOrphan(taskId),
      ),
    );
    expect(await first.lifecycle.getTask(taskId)).toMatchObject({ status: "failed" });
    expect((await store.get(taskId))?.version, "one claim and one end").toBe((before?.version ?? 0) + 2);
  });

  test("that was left alone for orphanMaxMs is ended by whoever asks, but not while somebody holds it", async () => {
    const clock = startClock();
    const { store, taskId } = await orphanTask(() => undefined, clock);
    const owner = startEngine({ store, now: clock.now });
    const held = await owner.lifecycle.createTask();
    const { lifecycle } = startEngine({ store, now: clock.now, orphanMaxMs: 20_000 });
    clock.advance(19_999);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    clock.advance(1);
    expect(await lifecycle.getTask(held.taskId)).toMatchObject({ status: "working" });
    expect(await lifecycle.getTask(taskId)).toMatchObject({
      status: "failed",
      error: { data: { reason: "interrupted" } },
    });
  });

  // CASES part 2, engine: "no tool/args/owner in the record: after restart nobody can know what to resume".
  test("can be taken over: another attempt with a fresh token, the checkpoint and the arguments", async () => {
    const { store, taskId } = await orphanTask((task) => task.saveCheckpoint({ page: 3 }));
    const before = await store.get(taskId);
    const { lifecycle } = startEngine({ store });
    const task = await lifecycle.acquire(taskId);
    expect(task).toMatchObject({ attempt: 2, checkpoint: { page: 3 } });
    const record = await store.get(taskId);
    expect(record).toMatchObject({ attempt: 2, crashes: 0, work: { arguments: { file: "a" } } });
    expect(record?.lease?.token).not.toBe(before?.lease?.token);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    await lifecycle.run(task, () => ({ done: true }));
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed", result: { done: true } });
  });

  test("is taken over by one of many who try at once", async () => {
    const { store, taskId } = await orphanTask();
    const engines = Array.from({ length: 4 }, () => startEngine({ store }));
    const tries = await Promise.allSettled(engines.map(({ lifecycle }) => lifecycle.acquire(taskId)));
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const losers = tries.flatMap((attempt) =>
      attempt.status === "rejected" ? [attempt.reason as unknown] : [],
    );
    expect(losers).toMatchObject(Array.from({ length: 3 }, () => ({ code: "lease_lost", retryable: true })));
  });

  test("is left alone while it waits for a person, and takes the answer", async () => {
    const { store, taskId } = await orphanTask(async (task, left) => {
      void task.requestInput({ size: question() });
      await vi.waitFor(async () => expect((await left.get(task.taskId))?.status).toBe("input_required"));
    });
    const { lifecycle } = startEngine({ store });
    const shown = { status: "input_required", inputRequests: { size: question() } };
    expect(await lifecycle.getTask(taskId)).toMatchObject(shown);
    await lifecycle.updateTask(taskId, { size: accepted() });
    expect((await store.get(taskId))?.inputs).toMatchObject({ size: { answer: accepted() } });
  });

  test("what an old handler of the gone engine still tries to write after a take-over is refused (P17)", async () => {
    const store = new MemoryTaskStore();
    const gone = startEngine({ store });
    const { taskId } = await gone.lifecycle.createTask();
    const zombie = gone.lifecycle.handle(taskId);
    await gone.lifecycle.close({ shutdownGraceMs: 0 });
    const { lifecycle } = startEngine({ store });
    const task = await lifecycle.acquire(taskId);
    const record = await store.get(taskId);
    expect(await codeOf(zombie.progress("late"))).toBe("lease_lost");
    expect(await codeOf(zombie.saveCheckpoint(1))).toBe("lease_lost");
    expect(await codeOf(zombie.complete({}))).toBe("lease_lost");
    expect(await codeOf(zombie.fail({ code: 1, message: "x" }))).toBe("lease_lost");
    expect(await codeOf(zombie.cancelled())).toBe("lease_lost");
    expect(await codeOf(zombie.resumeInput())).toBe("lease_lost");
    expect(zombie.signal.reason).toMatchObject({ code: "shutdown" });
    expect(await store.get(taskId)).toBe(record);
    expect(task.signal.aborted).toBe(false);
  });
});

describe("a task with an owner that may live is left alone", () => {
  test("another engine in this process holds it: it cannot be taken over, and asking changes nothing", async () => {
    const store = new MemoryTaskStore();
    const owner = startEngine({ store });
    const other = startEngine({ store });
    const { taskId } = await owner.lifecycle.createTask();
    expect(await other.lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    const error = await codedErrorOf(other.lifecycle.acquire(taskId));
    expect(error).toMatchObject({ code: "lease_lost", retryable: true });
    expect(await codeOf(owner.lifecycle.acquire(taskId))).toBe("lease_lost");
  });

  test("not even for a moment while it is being created or taken over by the engine that is asked", async () => {
    const { store, taskId } = await orphanTask();
    const { lifecycle } = startEngine({ store });
    const [task] = await Promise.all([
      lifecycle.acquire(taskId),
      ...Array.from({ length: 10 }, () => lifecycle.waitForChange(taskId, { timeoutMs: 0 })),
    ]);
    expect(task.signal.aborted).toBe(false);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
  });
});

// CASES part 2, engine: "no principal anywhere".
describe("a task of another scope looks unknown, to the letter (P31, engine part)", () => {
  test("for every call, in both directions", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask({ scope: "tenant-1/ann" });
    const open = await lifecycle.createTask();
    const before = await store.get(taskId);
    const unknown = await codedErrorOf(lifecycle.getTask("no-such-task"));
    const strangers = [
      {},
      { scope: "tenant-1/ben" },
      { scope: "tenant-1" },
      { scope: "" },
      { scope: undefined },
    ];
    for (const call of strangers) {
      for (const attempt of [
        lifecycle.getTask(taskId, call),
        lifecycle.updateTask(taskId, { a: {} }, call),
        lifecycle.cancelTask(taskId, call),
        lifecycle.waitForChange(taskId, call),
        lifecycle.acquire(taskId, call),
      ]) {
        const error = await codedErrorOf(attempt);
        expect(error.toJSON()).toEqual(
          JSON.parse(JSON.stringify(unknown).replace("no-such-task", taskId)) as object,
        );
      }
    }
    expect(await codeOf(lifecycle.getTask(open.taskId, { scope: "tenant-1/ann" }))).toBe("unknown_task");
    expect(await store.get(taskId)).toBe(before);
    expect(await lifecycle.getTask(taskId, { scope: "tenant-1/ann" })).toMatchObject({ taskId });
  });
});

test.each([
  "../x",
  "a/b",
  "a\u0000",
  "%2e",
  "x".repeat(300),
  "",
  "__proto__",
  "*",
  "-a",
  "a b",
  5,
  null,
  {},
  Object.create(null),
])("the hostile id %j is unknown without a store call (P33)", async (id) => {
  const engine = startEngine();
  const getting = vi.spyOn(engine.store, "get");
  const taskId = id as string;
  expect(await codeOf(engine.lifecycle.getTask(taskId))).toBe("unknown_task");
  expect(await codeOf(engine.lifecycle.updateTask(taskId, { a: {} }))).toBe("unknown_task");
  expect(await codeOf(engine.lifecycle.cancelTask(taskId))).toBe("unknown_task");
  expect(await codeOf(engine.lifecycle.waitForChange(taskId))).toBe("unknown_task");
  expect(await codeOf(engine.lifecycle.acquire(taskId))).toBe("unknown_task");
  expect(getting).not.toHaveBeenCalled();
});

test("a record of another kind looks unknown to every task call", async () => {
  const engine = startEngine();
  const { taskId } = await engine.lifecycle.createTask();
  const record = await engine.store.get(taskId);
  await engine.store.update(taskId, { kind: "transfer", data: { offset: 1 } }, record?.version ?? 0);
  expect(await codeOf(engine.lifecycle.getTask(taskId))).toBe("unknown_task");
  expect(await codeOf(engine.lifecycle.updateTask(taskId, { a: {} }))).toBe("unknown_task");
  expect(await codeOf(engine.lifecycle.cancelTask(taskId))).toBe("unknown_task");
});
