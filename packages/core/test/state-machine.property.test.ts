import * as fc from "fast-check";
import { expect, test } from "vitest";

import { MemoryTaskStore, TaskLifecycle, type TaskHandle } from "../src/index.ts";
import { startClock, type TestClock } from "./support/clock.ts";
import { codeOf } from "./support/errors.ts";
import { accepted, needsOk, question } from "./support/questions.ts";
import { nextTurn } from "./support/turns.ts";
import * as model from "./support/task-model.ts";
import type { Model, ModelTask } from "./support/task-model.ts";

interface Asked {
  readonly key: string;
  readonly answer: Promise<unknown>;
}

interface Real {
  readonly clock: TestClock;
  readonly store: MemoryTaskStore;
  readonly lifecycle: TaskLifecycle;
  readonly handles: TaskHandle[];
  /** The questions of each task that a handler still waits for. */
  readonly asked: Asked[][];
}

type Command = fc.AsyncCommand<Model, Real>;

/** A command on one of the tasks; it runs when there is one, and is followed by a full comparison. */
function onTask(
  name: string,
  pick: number,
  run: (task: ModelTask, real: Real, at: number, state: Model) => Promise<void>,
): Command {
  return {
    check: ({ tasks }) => tasks.length > 0,
    run: async (state, real) => {
      const at = pick % state.tasks.length;
      await run(state.tasks[at] as ModelTask, real, at, state);
      await compare(state, real);
    },
    toString: () => `${name} #${pick}`,
  };
}

function anyTime(name: string, run: (state: Model, real: Real) => Promise<void> | void): Command {
  return {
    check: () => true,
    run: async (state, real) => {
      await run(state, real);
      await compare(state, real);
    },
    toString: () => name,
  };
}

async function compare(state: Model, { handles, lifecycle }: Real): Promise<void> {
  for (const [at, task] of state.tasks.entries()) {
    const { taskId } = handles[at] as TaskHandle;
    if (model.isGone(state, task)) {
      expect(await codeOf(lifecycle.getTask(taskId))).toBe("unknown_task");
      continue;
    }
    const shown = await lifecycle.getTask(taskId);
    const open = shown.status === "input_required" ? Object.keys(shown.inputRequests) : [];
    expect({
      status: shown.status,
      message: shown.statusMessage,
      open: open.map((key) => key.replace(/~.*/, "")),
      endsAtMs: Date.parse(shown.createdAt) + (shown.ttlMs ?? Infinity),
    }).toEqual({
      status: model.statusOf(task),
      message: task.message,
      open: expect.toSatisfy((keys: string[]) => sameKeys(keys, model.openKeys(task))) as unknown,
      endsAtMs: task.endsAtMs,
    });
    expect(Object.hasOwn(shown, "result")).toBe(task.ended === "completed");
    expect(Object.hasOwn(shown, "error")).toBe(task.ended === "failed");
  }
}

function sameKeys(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((key) => right.includes(key));
}

/** Whatever was refused has changed nothing. */
async function refused(real: Real, at: number, call: () => Promise<unknown>, codes: RegExp): Promise<void> {
  const { taskId } = real.handles[at] as TaskHandle;
  const before = await real.store.get(taskId);
  expect(await codeOf(call)).toMatch(codes);
  expect(await real.store.get(taskId)).toBe(before);
}

const over = /^(?:task_terminal|unknown_task|expired|cancelled|lease_lost)$/;

const create = anyTime("create", async (state, real) => {
  if (state.tasks.length === 3) return;
  const { taskId } = await real.lifecycle.createTask();
  state.tasks.push(model.newModelTask(state.nowMs));
  real.handles.push(real.lifecycle.handle(taskId));
  real.asked.push([]);
});

function step(ms: number): Command {
  return anyTime(`clock +${ms}`, (state, { clock }) => {
    state.nowMs += ms;
    clock.advance(ms);
  });
}

const sweep = anyTime("sweep", async (state, { lifecycle, store }) => {
  await lifecycle.sweep();
  expect(store.size).toBe(state.tasks.filter((task) => !model.isGone(state, task)).length);
});

function progress(pick: number, text: string): Command {
  return onTask(`progress ${text}`, pick, async (task, real, at, state) => {
    const call = (): Promise<void> => (real.handles[at] as TaskHandle).progress(text);
    if (model.isOver(state, task)) return refused(real, at, call, over);
    await call();
    task.message = text;
  });
}

function ask(pick: number, key: string, text: string): Command {
  return onTask(`ask ${key}: ${text}`, pick, async (task, real, at, state) => {
    const call = (): Promise<unknown> =>
      (real.handles[at] as TaskHandle).requestInput({ [key]: question(text) });
    const known = task.questions.get(key);
    if (model.isOver(state, task) || task.cancelRequested) return refused(real, at, call, over);
    if (known !== undefined && known.text !== text) return refused(real, at, call, /^input_key_reused$/);
    if (known?.state === "invalid") return refused(real, at, call, /^invalid_input_response$/);
    if (known?.state === "answered") {
      expect(await call()).toEqual({ [key]: accepted({ ok: true }) });
      return;
    }
    real.asked[at]?.push({ key, answer: call() });
    task.questions.set(key, known ?? { text, state: "open", badAnswers: 0 });
    while (!(await wireKeyOf(real, at, key))) await nextTurn();
  });
}

async function wireKeyOf({ handles, lifecycle }: Real, at: number, key: string): Promise<string | undefined> {
  const shown = await lifecycle.getTask((handles[at] as TaskHandle).taskId);
  if (shown.status !== "input_required") return undefined;
  return Object.keys(shown.inputRequests).find((wireKey) => wireKey.replace(/~.*/, "") === key);
}

function answer(pick: number, key: string, good: boolean): Command {
  return onTask(`${good ? "good" : "bad"} answer to ${key}`, pick, async (task, real, at, state) => {
    const { taskId } = real.handles[at] as TaskHandle;
    if (model.isGone(state, task)) {
      return refused(real, at, () => real.lifecycle.updateTask(taskId, { [key]: accepted() }), over);
    }
    const wireKey = (await wireKeyOf(real, at, key)) ?? key;
    await real.lifecycle.updateTask(taskId, { [wireKey]: good ? accepted({ ok: true }) : accepted() });
    const known = task.questions.get(key);
    if (known === undefined || model.isOver(state, task)) return;
    model.answerQuestion(known, good);
    if (known.state === "answered") await settle(real, at, key, { [key]: accepted({ ok: true }) });
    if (known.state === "invalid") await settle(real, at, key, "invalid_input_response");
  });
}

/** Everybody who waited for this key, or for any, has got it. */
async function settle(real: Real, at: number, key: string | undefined, expected: unknown): Promise<void> {
  const waiting = real.asked[at] ?? [];
  for (const asked of waiting.filter((each) => key === undefined || each.key === key)) {
    waiting.splice(waiting.indexOf(asked), 1);
    if (typeof expected === "string") expect(await codeOf(asked.answer)).toBe(expected);
    else expect(await asked.answer).toEqual(expected);
  }
}

function cancel(pick: number): Command {
  return onTask("cancel", pick, async (task, real, at, state) => {
    const call = (): Promise<void> => real.lifecycle.cancelTask((real.handles[at] as TaskHandle).taskId);
    if (model.isGone(state, task)) return refused(real, at, call, over);
    await call();
    if (model.isOver(state, task)) return;
    model.cancelModelTask(task);
    await settle(real, at, undefined, "cancelled");
  });
}

function end(pick: number, how: "completed" | "failed"): Command {
  return onTask(how, pick, async (task, real, at, state) => {
    const handle = real.handles[at] as TaskHandle;
    const call = (): Promise<void> =>
      how === "completed" ? handle.complete({ done: true }) : handle.fail({ code: 1, message: "broken" });
    if (model.isOver(state, task)) return refused(real, at, call, over);
    await call();
    model.endTask(state, task, how);
    await settle(real, at, undefined, "task_terminal");
  });
}

const pick = fc.nat(2);
const key = fc.constantFrom("a", "b");
const text = fc.constantFrom("One?", "Two?");

const commands = fc.commands(
  [
    fc.constant(create),
    fc.constant(sweep),
    fc.constantFrom(1, 30_000, 60_000, 200_000).map(step),
    fc.tuple(pick, text).map(([at, say]) => progress(at, say)),
    fc.tuple(pick, key, text).map(([at, name, say]) => ask(at, name, say)),
    fc.tuple(pick, key, fc.boolean()).map(([at, name, good]) => answer(at, name, good)),
    fc.tuple(pick, key).map(([at, name]) => answer(at, name, false)),
    pick.map(cancel),
    fc.tuple(pick, fc.constantFrom("completed", "failed")).map(([at, how]) => end(at, how)),
  ],
  { maxCommands: 60, size: "+1" },
);

test("every sequence of calls gives what the reference model gives", async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const clock = startClock();
      const store = new MemoryTaskStore({ now: clock.now });
      const options = { store, now: clock.now, retentionMs: model.retentionMs, leaseMs: model.leaseMs };
      const lifecycle = new TaskLifecycle({ ...options, validateAnswer: needsOk });
      try {
        const real: Real = { clock, store, lifecycle, handles: [], asked: [] };
        await fc.asyncModelRun(() => ({ model: { nowMs: clock.now(), tasks: [] }, real }), sequence);
      } finally {
        await lifecycle.close({ shutdownGraceMs: 0 });
      }
      expect(lifecycle.stats.attempts).toBe(0);
    }),
    { numRuns: Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 150) },
  );
});
