import { describe, expect, test, vi } from "vitest";

import { isTerminal, MemoryTaskStore, type TaskAttempt, type TaskRecord } from "../src/index.ts";
import { startEngine, type Engine } from "./support/engine.ts";
import { codeOf, errorOf } from "./support/errors.ts";
import { accepted, question } from "./support/questions.ts";
import { nextTurn } from "./support/turns.ts";

type Ending = "completed" | "failed" | "cancelled";

const endings: { readonly [Status in Ending]: (task: TaskAttempt) => Promise<void> } = {
  completed: (task) => task.complete({ content: [] }),
  failed: (task) => task.fail({ code: -32_000, message: "broken" }),
  cancelled: (task) => task.cancelled("stopped"),
};

const moves: { readonly [name: string]: (task: TaskAttempt) => Promise<unknown> } = {
  complete: (task) => task.complete({ other: true }),
  "complete with the very same result": (task) => task.complete({ content: [] }),
  fail: (task) => task.fail({ code: 1, message: "other" }),
  cancelled: (task) => task.cancelled(),
  requestInput: (task) => task.requestInput({ late: question() }),
  progress: (task) => task.progress("late"),
  saveCheckpoint: (task) => task.saveCheckpoint({ late: true }),
  resumeInput: (task) => task.resumeInput(),
};

async function taskThatEnded(
  status: Ending,
): Promise<{ engine: Engine; task: TaskAttempt; record: TaskRecord }> {
  const engine = startEngine();
  const { taskId } = await engine.lifecycle.createTask({ work: { tool: "t", arguments: { a: 1 } } });
  const task = engine.lifecycle.handle(taskId) as TaskAttempt;
  await endings[status](task);
  const record = await engine.store.get(taskId);
  if (record === undefined) throw new Error("The task is gone.");
  return { engine, task, record };
}

describe.each(Object.keys(endings) as Ending[])("a %s task is final (P07)", (status) => {
  test.each(Object.keys(moves))("%s is refused as task_terminal and changes nothing", async (name) => {
    const { engine, record, task } = await taskThatEnded(status);
    expect(await codeOf((moves[name] as (task: TaskAttempt) => Promise<unknown>)(task))).toBe(
      "task_terminal",
    );
    expect(await engine.store.get(task.taskId)).toBe(record);
  });

  test("tasks/cancel and tasks/update are acknowledged and change nothing", async () => {
    const { engine, record, task } = await taskThatEnded(status);
    await engine.lifecycle.cancelTask(task.taskId);
    await engine.lifecycle.updateTask(task.taskId, { late: accepted() }, { malformedKeys: ["x"] });
    expect(await engine.store.get(task.taskId)).toBe(record);
    expect(task.signal.aborted).toBe(false);
  });

  test("acquire is refused as task_terminal, handle as lease_lost", async () => {
    const { engine, record, task } = await taskThatEnded(status);
    expect(await codeOf(engine.lifecycle.acquire(task.taskId))).toBe("task_terminal");
    expect(await codeOf(() => engine.lifecycle.handle(task.taskId))).toBe("lease_lost");
    expect(await engine.store.get(task.taskId)).toBe(record);
  });

  test("a lease that still runs out and a timer that still ticks change nothing", async () => {
    vi.useFakeTimers();
    const { engine, record, task } = await taskThatEnded(status);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(await engine.store.get(task.taskId)).toBe(record);
  });

  test("its record has its payload alone, and no lease, arguments, answers or checkpoint", async () => {
    const engine = startEngine();
    const { taskId } = await engine.lifecycle.createTask({ work: { tool: "t", arguments: { a: 1 } } });
    const task = engine.lifecycle.handle(taskId) as TaskAttempt;
    await task.saveCheckpoint({ page: 1 });
    await task.progress("step 3/9");
    const asking = task.requestInput({ size: question() });
    await vi.waitFor(async () =>
      expect((await engine.lifecycle.getTask(taskId)).status).toBe("input_required"),
    );
    await engine.lifecycle.updateTask(taskId, { size: accepted() });
    await asking;
    await endings[status](task);
    const record = await engine.store.get(taskId);
    expect(record).toMatchObject({ status, work: { tool: "t" }, finishedBy: expect.any(String) });
    for (const field of ["lease", "inputs", "checkpoint"]) expect(record).not.toHaveProperty(field);
    expect(record?.work).not.toHaveProperty("arguments");
    const payloads = ["result", "error"].filter((field) => Object.hasOwn(record ?? {}, field));
    expect(payloads).toEqual({ completed: ["result"], failed: ["error"], cancelled: [] }[status]);
    // CASES part 2, engine: 'statusMessage "step 3/9" stays on failed/completed'.
    expect(record?.statusMessage).toBe(
      { completed: undefined, failed: "broken", cancelled: "stopped" }[status],
    );
  });
});

// CASES part 2, engine: "fail({oops:true}) accepted".
test.each([
  {},
  { oops: true },
  { code: 1 },
  { code: 1.5, message: "x" },
  { code: "1", message: "x" },
  { message: "x" },
  null,
  "broken",
])("fail(%j) is a TypeError, and the task goes on", async (error) => {
  const { lifecycle } = startEngine();
  const { taskId } = await lifecycle.createTask();
  expect(await errorOf(lifecycle.handle(taskId).fail(error as never))).toBeInstanceOf(TypeError);
  expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
});

test.each([null, undefined, 5, "x", [], { n: 1n }])(
  "complete(%s) is invalid_json, and the task goes on",
  async (result) => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    expect(await codeOf(lifecycle.handle(taskId).complete(result as never))).toBe("invalid_json");
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
  },
);

describe("one winner, also with two engines on one store (P08)", () => {
  test("complete, fail, cancelled and tasks/cancel at once, 1,000 rounds", async () => {
    const store = new MemoryTaskStore();
    const owner = startEngine({ store });
    const other = startEngine({ store });
    const winners = new Set<string>();
    for (let round = 0; round < 1_000; round += 1) {
      const { taskId } = await owner.lifecycle.createTask();
      const task = owner.lifecycle.handle(taskId) as TaskAttempt;
      const racers = [
        ...Object.values(endings),
        async (): Promise<void> => other.lifecycle.cancelTask(taskId),
      ];
      // Each round another order, so that each racer is first in some of them.
      const rotated = [...racers.slice(round % 4), ...racers.slice(0, round % 4)];
      const settled = await Promise.allSettled(rotated.map((race) => race(task)));
      const ended = await other.lifecycle.getTask(taskId);
      winners.add(ended.status);
      expect(isTerminal(ended.status)).toBe(true);
      expect(Object.hasOwn(ended, "result")).toBe(ended.status === "completed");
      expect(Object.hasOwn(ended, "error")).toBe(ended.status === "failed");
      const refused = settled.filter(({ status }) => status === "rejected");
      expect(refused.map((outcome) => (outcome as PromiseRejectedResult).reason as unknown)).toMatchObject([
        { code: "task_terminal" },
        { code: "task_terminal" },
      ]);
    }
    expect(winners.size).toBe(3);
  });

  test("the first to call wins, whichever it is", async () => {
    for (const first of Object.keys(endings) as Ending[]) {
      const { lifecycle } = startEngine();
      const { taskId } = await lifecycle.createTask();
      const task = lifecycle.handle(taskId) as TaskAttempt;
      const others = (Object.keys(endings) as Ending[]).filter((status) => status !== first);
      await Promise.allSettled([first, ...others].map((status) => endings[status](task)));
      expect((await lifecycle.getTask(taskId)).status).toBe(first);
    }
  });
});

test("a reader in a tight loop never sees a status without its payload (P09)", async () => {
  const store = new MemoryTaskStore();
  const { lifecycle } = startEngine({ store });
  const stop = new AbortController();
  let current = "";
  let reads = 0;
  const seen = new Set<string>();
  const reader = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      // Reads come between all the writes of a turn; without an end to the turn no timer would ever run.
      if ((reads += 1) % 50 === 0) await nextTurn();
      const record = await store.get(current);
      if (record === undefined) continue;
      seen.add(record.status);
      const open = Object.values(record.inputs ?? {}).some(({ state }) => state === "open");
      expect(record.result !== undefined).toBe(record.status === "completed");
      expect(record.error !== undefined).toBe(record.status === "failed");
      expect(open).toBe(record.status === "input_required");
      expect(record.lease === undefined).toBe(isTerminal(record.status));
    }
  };
  const loop = reader();
  for (let round = 0; round < 150; round += 1) {
    ({ taskId: current } = await lifecycle.createTask());
    const task = lifecycle.handle(current) as TaskAttempt;
    const asking = task.requestInput({ size: question() });
    await vi.waitFor(async () => expect((await store.get(current))?.status).toBe("input_required"), {
      interval: 1,
    });
    await lifecycle.updateTask(current, { size: accepted() });
    await asking;
    await endings[(["completed", "failed", "cancelled"] as const)[round % 3] ?? "failed"](task);
    await nextTurn();
  }
  stop.abort();
  await loop;
  expect([...seen].toSorted()).toEqual(["cancelled", "completed", "failed", "input_required", "working"]);
});
