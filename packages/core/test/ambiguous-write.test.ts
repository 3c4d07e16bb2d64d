import { faultyTaskStore, type StoreCall } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, type TaskHandle, type TaskStore } from "../src/index.ts";
import { startEngine, takeErrors, type Engine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { accepted, question } from "./support/questions.ts";
import { startClock } from "./support/clock.ts";

// CASES part 2, engine: "ambiguous write. Store commits then throws."; "must: re-read and recognise own write".

type Fault = "reply lost" | "write lost" | "resent";

/** A store whose next write, once armed, goes wrong in one way. */
function breakable(): {
  readonly store: TaskStore;
  readonly arm: (fault: Fault) => void;
  readonly inner: MemoryTaskStore;
} {
  const inner = new MemoryTaskStore();
  let armed: Fault | undefined;
  const strikes = (call: StoreCall, fault: Fault): boolean => {
    if (armed !== fault || (call.method !== "create" && call.method !== "update")) return false;
    armed = undefined;
    return true;
  };
  const lost = (): never => {
    throw new LongJobsError("store_unavailable", "The connection was lost.", { retryable: true });
  };
  const store = faultyTaskStore(inner, {
    before: (call) => (strikes(call, "write lost") ? lost() : undefined),
    after: (call) => (strikes(call, "reply lost") ? lost() : undefined),
    repeat: (call) => strikes(call, "resent"),
  });
  return {
    store,
    inner,
    arm: (fault) => {
      armed = fault;
    },
  };
}

interface Case {
  readonly name: string;
  readonly act: (engine: Engine, task: TaskHandle) => Promise<unknown>;
  /** What the record shows once the act has happened. */
  readonly done: object;
  /** A question that was opened before. */
  readonly asked?: true;
  /** It is no caller's to repeat: an attempt does so itself. */
  readonly repeats?: true;
}

const cases: readonly Case[] = [
  {
    name: "complete",
    act: (_e, task) => task.complete({ content: [] }),
    done: { status: "completed", result: { content: [] } },
  },
  {
    name: "fail",
    act: (_e, task) => task.fail({ code: 5, message: "five", data: { a: 1 } }),
    done: { status: "failed", error: { code: 5, message: "five", data: { a: 1 } } },
  },
  {
    name: "cancelled",
    act: (_e, task) => task.cancelled("stopped"),
    done: { status: "cancelled", statusMessage: "stopped" },
  },
  {
    name: "progress",
    repeats: true,
    act: (_e, task) => task.progress("half"),
    done: { statusMessage: "half", progress: { message: "half" } },
  },
  {
    name: "saveCheckpoint",
    repeats: true,
    act: (_e, task) => task.saveCheckpoint({ page: 1 }),
    done: { checkpoint: { value: { page: 1 } } },
  },
  {
    name: "cancelTask",
    act: ({ lifecycle }, { taskId }) => lifecycle.cancelTask(taskId),
    done: { cancelRequestedAt: expect.any(String) },
  },
  {
    name: "updateTask",
    asked: true,
    act: ({ lifecycle }, { taskId }) => lifecycle.updateTask(taskId, { asked: accepted() }),
    done: { status: "working", inputs: { asked: { state: "answered", answer: accepted() } } },
  },
];

async function taskOf(engine: Engine, { asked }: Case): Promise<TaskHandle> {
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  if (asked === true) {
    void task.requestInput({ asked: question() });
    await vi.waitFor(async () =>
      expect((await engine.lifecycle.getTask(taskId)).status).toBe("input_required"),
    );
  }
  return task;
}

describe.each(cases)("$name", (given) => {
  test.each<Fault>(["reply lost", "resent"])("succeeds when it was committed and the %s", async (fault) => {
    const { arm, inner, store } = breakable();
    const engine = startEngine({ store });
    const task = await taskOf(engine, given);
    const before = await inner.get(task.taskId);
    arm(fault);
    await given.act(engine, task);
    const after = await inner.get(task.taskId);
    expect(after).toMatchObject(given.done);
    expect(after?.version, "written once").toBe((before?.version ?? 0) + 1);
  });

  test("is not guessed to have happened when the write was lost: nothing has changed, and a repeat works", async () => {
    const { arm, inner, store } = breakable();
    const engine = startEngine({ store });
    const task = await taskOf(engine, given);
    const before = await inner.get(task.taskId);
    arm("write lost");
    if (given.repeats !== true) {
      expect(await codeOf(given.act(engine, task))).toBe("store_unavailable");
      expect(await inner.get(task.taskId)).toEqual(before);
    }
    await given.act(engine, task);
    const after = await inner.get(task.taskId);
    expect(after).toMatchObject(given.done);
    expect(after?.version, "written once").toBe((before?.version ?? 0) + 1);
    expect(takeErrors(engine)).toHaveLength(given.repeats === true ? 1 : 0);
  });
});

describe("createTask", () => {
  test.each<Fault>(["reply lost", "resent"])("succeeds when it was committed and the %s", async (fault) => {
    const { arm, inner, store } = breakable();
    const { lifecycle } = startEngine({ store });
    arm(fault);
    const { taskId } = await lifecycle.createTask();
    await lifecycle.handle(taskId).complete({});
    expect(inner.size).toBe(1);
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
  });

  test("leaves nothing behind when the write was lost", async () => {
    const { arm, inner, store } = breakable();
    const { lifecycle } = startEngine({ store });
    arm("write lost");
    expect(await codeOf(lifecycle.createTask())).toBe("store_unavailable");
    expect(inner.size).toBe(0);
    expect(lifecycle.stats.attempts).toBe(0);
  });
});

describe("requestInput", () => {
  test.each<Fault>(["reply lost", "resent"])(
    "waits for its answer when the question was committed and the %s: not stuck, no second question",
    async (fault) => {
      const { arm, inner, store } = breakable();
      const { lifecycle } = startEngine({ store });
      const { taskId } = await lifecycle.createTask();
      arm(fault);
      const asking = lifecycle.handle(taskId).requestInput({ size: question() });
      await vi.waitFor(async () => expect((await inner.get(taskId))?.status).toBe("input_required"));
      await lifecycle.updateTask(taskId, { size: accepted({ ok: true }) });
      expect(await asking).toEqual({ size: accepted({ ok: true }) });
      expect(Object.keys((await inner.get(taskId))?.inputs ?? {})).toEqual(["size"]);
    },
  );

  test("is opened again by itself when the write was lost", async () => {
    const { arm, inner, store } = breakable();
    const engine = startEngine({ store });
    const { lifecycle } = engine;
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    arm("write lost");
    const asking = task.requestInput({ size: question() });
    await vi.waitFor(async () => expect((await inner.get(taskId))?.status).toBe("input_required"));
    await lifecycle.updateTask(taskId, { size: accepted() });
    expect(await asking).toEqual({ size: accepted() });
    expect(takeErrors(engine)).toHaveLength(1);
  });
});

test("acquire succeeds when it was committed and the reply was lost", async () => {
  const { arm, inner, store } = breakable();
  const first = startEngine({ store });
  const { taskId } = await first.lifecycle.createTask();
  await first.lifecycle.close({ shutdownGraceMs: 0 });
  const second = startEngine({ store });
  arm("reply lost");
  const task = await second.lifecycle.acquire(taskId);
  expect(task.attempt).toBe(2);
  expect((await inner.get(taskId))?.attempt).toBe(2);
  await task.complete({});
  expect(await second.lifecycle.getTask(taskId)).toMatchObject({ status: "completed" });
});

test("complete that failed with a store that stayed away is recognised when it is repeated later", async () => {
  const inner = new MemoryTaskStore();
  let down = false;
  const refuse = (): void => {
    if (down) throw new LongJobsError("store_unavailable", "The store is away.");
  };
  const store = faultyTaskStore(inner, {
    before: (call) => (call.method === "get" ? refuse() : undefined),
    after: (call) => {
      if (call.method !== "update") return;
      down = true;
      refuse();
    },
  });
  const engine = startEngine({ store });
  const { taskId } = await engine.lifecycle.createTask();
  const task = engine.lifecycle.handle(taskId);
  expect(await codeOf(task.complete({ a: 1 }))).toBe("store_unavailable");
  down = false;
  await task.complete({ a: 1 });
  expect(await codeOf(task.complete({ a: 2 }))).toBe("task_terminal");
  expect(await inner.get(taskId)).toMatchObject({ status: "completed", result: { a: 1 } });
  takeErrors(engine);
});

test("an equal state that somebody else wrote is not taken for an own write", async () => {
  const clock = startClock();
  const { lifecycle } = startEngine({ now: clock.now });
  const { taskId } = await lifecycle.createTask();
  const task = lifecycle.handle(taskId);
  await task.complete({ a: 1 });
  expect(await codeOf(task.complete({ a: 1 }))).toBe("task_terminal");
});

test.each(["create", "update"] as const)(
  "a %s that was resent and then cannot be read is told as the store's failure, not as a conflict",
  async (method) => {
    let armed = false;
    let resent = false;
    const store = faultyTaskStore(new MemoryTaskStore(), {
      repeat: (call) => (resent ||= armed && call.method === method),
      before: (call) => {
        if (resent && call.method === "get") throw new LongJobsError("store_unavailable", "Away.");
      },
    });
    const engine = startEngine({ store });
    const { taskId } = await engine.lifecycle.createTask();
    const task = engine.lifecycle.handle(taskId);
    armed = true;
    const call = method === "create" ? engine.lifecycle.createTask() : task.complete({});
    expect(await codeOf(call)).toBe("store_unavailable");
    await engine.lifecycle.close();
    takeErrors(engine);
  },
);
