import { isLongJobsError } from "@longjobs/core";
import type { Outcome, TaskAttempt, TaskLifecycle } from "@longjobs/core";
import { hasEnded, toAnswer, type EndedTask } from "./call-answer.ts";
import type { InlineClock } from "./inline-clock.ts";
import type { Served } from "./serve-tool-call.ts";
import type { TaskWish, ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** Work that is ready to start, and the call that it is for. */
export interface Work {
  readonly tool: TaskTool;
  readonly call: ToolCall;
  readonly scope: string | undefined;
  readonly lifecycle: TaskLifecycle;
  readonly attempt: TaskAttempt;
  readonly clock: InlineClock;
  /** True for a call with an idempotency key: its task is recorded already. */
  readonly keyed: boolean;
  /** Runs the handler and writes what becomes of its task. */
  readonly run: () => Promise<Outcome>;
}

/**
 * Starts the work, and answers its call: a client that asked for a task of 2025-11-25 gets one at once; one that waits gets the
 * result in the end; any other gets the result within the inline budget, else a handle.
 *
 * @throws the handler's own protocol error, or why there is no answer.
 */
export function serveWork(work: Work): Promise<Served> {
  const { call, keyed, tool } = work;
  if (call.taskWish !== undefined) return serveAsTask(call.taskWish, work);
  if (waitsToTheEnd(tool, call)) return serveToTheEnd(work);
  return keyed ? serveRecorded(work) : serveWithHandle(work);
}

/** True for a client without tasks of a tool whose work is waited for. */
export function waitsToTheEnd(tool: TaskTool, { declaresTasks }: ToolCall): boolean {
  return !declaresTasks && tool.fallback === "wait";
}

/** True for a call whose final result an SDK checks against the output schema that its client was shown. */
export function isChecked(tool: TaskTool, call: ToolCall): boolean {
  return call.outputSchema !== undefined && call.taskWish === undefined && waitsToTheEnd(tool, call);
}

/** Always a handle, at once: such a client has asked for a task. It gets progress for the life of the task. */
async function serveAsTask(wish: TaskWish, { attempt, run }: Work): Promise<Served> {
  const view = await attempt.promote();
  if (wish.progressFor !== undefined) attempt.onProgress(wish.progressFor(attempt.taskId));
  void begin(run);
  return { kind: "task", view };
}

/** The result within the inline budget, else a handle. */
async function serveWithHandle({ attempt, call, clock, run, tool }: Work): Promise<Served> {
  // Without a budget the task is recorded before its handler starts: a rejected create starts nothing.
  if (tool.inlineBudgetMs === 0) await attempt.promote();
  // Listening comes first: a handler may save a checkpoint in its very first step.
  const promoted = untilPromoted(attempt);
  const stop = call.declaresTasks ? undefined : sendProgress(call, attempt);
  const running = begin(run);
  if (!attempt.recorded) await firstOf(running, promoted, tool.inlineBudgetMs, clock);
  stop?.();
  if (attempt.ended && !attempt.recorded) return { kind: "result", result: toAnswer(await running, false) };
  return { kind: "task", view: await attempt.promote() };
}

/** The same for a task that is in the store before its handler starts: a question alone gives its handle earlier. */
async function serveRecorded(work: Work): Promise<Served> {
  const { attempt } = work;
  const outcome = await withinBudget(work);
  const end = outcome?.status === "abandoned" ? await endedTask(work) : outcome;
  if (end !== undefined) return { kind: "result", result: toAnswer(end, true) };
  return { kind: "task", view: await attempt.promote() };
}

async function withinBudget(work: Work): Promise<Outcome | undefined> {
  const { attempt, call, clock, run, tool } = work;
  const asked = untilAsked(work);
  const stop = call.declaresTasks ? undefined : sendProgress(call, attempt);
  try {
    const running = begin(run);
    return tool.inlineBudgetMs === 0
      ? undefined
      : await firstOf(running, asked.opened, tool.inlineBudgetMs, clock);
  } finally {
    stop?.();
    asked.stop();
  }
}

/** Work that cannot begin, because its server has closed meanwhile, says so to who waits. Nobody may: it goes on elsewhere. */
function begin(run: Work["run"]): Promise<Outcome> {
  const running = run();
  running.catch(() => undefined);
  return running;
}

async function serveToTheEnd(work: Work): Promise<Served> {
  const stop = sendProgress(work.call, work.attempt);
  const outcome = await work.run();
  stop?.();
  const end = outcome.status === "abandoned" && work.attempt.recorded ? await endedTask(work) : undefined;
  return { kind: "result", result: toAnswer(end ?? outcome, work.keyed) };
}

/** How the record says that a task ended whose handler left nothing to write: it may have ended the task itself. */
async function endedTask({ attempt, lifecycle, scope }: Work): Promise<EndedTask | undefined> {
  try {
    const task = await lifecycle.getTask(attempt.taskId, { scope });
    return hasEnded(task) ? task : undefined;
  } catch (error) {
    // A server that shuts down answers with what it knows: the task goes on elsewhere.
    if (isLongJobsError(error, "store_closed")) return undefined;
    throw error;
  }
}

function sendProgress(call: ToolCall, attempt: TaskAttempt): (() => void) | undefined {
  return call.sendProgress === undefined ? undefined : attempt.onProgress(call.sendProgress);
}

function untilPromoted(attempt: TaskAttempt): Promise<void> {
  return new Promise((resolve) => {
    attempt.onPromote(resolve);
  });
}

/** Resolves when a question can be answered, which needs the handle. */
function untilAsked({ attempt, lifecycle }: Work): {
  readonly opened: Promise<void>;
  readonly stop: () => void;
} {
  let stop = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    stop = lifecycle.onTaskChanged(({ taskId, status }) => {
      if (taskId === attempt.taskId && status === "input_required") resolve();
    });
  });
  return { opened, stop };
}

/** The outcome if the work is done first; else nothing, when the handle is needed or the budget is over. */
async function firstOf(
  running: Promise<Outcome>,
  handleNeeded: Promise<void>,
  budgetMs: number,
  { schedule }: InlineClock,
): Promise<Outcome | undefined> {
  let cancel = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    cancel = schedule(resolve, budgetMs, true);
  });
  const first = await Promise.race([running, handleNeeded, over]);
  cancel();
  return first ?? undefined;
}
