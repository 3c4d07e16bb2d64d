import type { CreateTaskOptions, DetailedTask, TaskLifecycle, TaskView } from "@longjobs/core";
import { hasEnded, toAnswer } from "./call-answer.ts";
import type { InlineClock } from "./inline-clock.ts";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import type { Served } from "./serve-tool-call.ts";
import { waitsToTheEnd } from "./serve-work.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";
import { waitWhile } from "./wait-for-task.ts";

/** A call whose work a worker elsewhere does. */
export interface ElsewhereCall {
  readonly tool: TaskTool;
  readonly call: ToolCall;
  readonly scope: string | undefined;
  readonly lifecycle: TaskLifecycle;
  readonly clock: InlineClock;
  /** True for a call with an idempotency key: its client comes again. */
  readonly keyed: boolean;
}

/**
 * Accepts the work, has it delivered, and answers the call as if the work were done here: a client that asked for a task of
 * 2025-11-25 gets one at once; one that waits gets the result in the end; any other gets the result within the inline budget,
 * else a handle. A client that goes away before anything was sent cancels the task: nobody could reach it.
 *
 * @throws the handler's own protocol error, or why there is no answer.
 */
export async function serveElsewhere(options: CreateTaskOptions, elsewhere: ElsewhereCall): Promise<Served> {
  return serveDispatched(await elsewhere.lifecycle.dispatchTask(options), elsewhere);
}

/** As {@link serveElsewhere}, for a task that has been dispatched. */
export async function serveDispatched(view: TaskView, elsewhere: ElsewhereCall): Promise<Served> {
  const { call, keyed, lifecycle, scope } = elsewhere;
  const { taskId } = view;
  if (call.taskWish !== undefined) return { kind: "task", view };
  try {
    const task = await waitForAnswer(await lifecycle.getTask(taskId, { scope }), elsewhere);
    if (hasEnded(task)) return { kind: "result", result: toAnswer(task, keyed) };
    return { kind: "task", view };
  } catch (error) {
    if (!call.signal.aborted) throw error;
    if (!keyed) await lifecycle.cancelTask(taskId, { scope });
    // The client ended its call: nobody is told anything, and nothing is wrong.
    throw jsonRpcError(rpcCode.internalError, "The call was cancelled.");
  }
}

async function waitForAnswer(first: DetailedTask, elsewhere: ElsewhereCall): Promise<DetailedTask> {
  const { call, clock, lifecycle, scope, tool } = elsewhere;
  const { sendProgress, signal, declaresTasks } = call;
  const { now } = clock;
  const wait = { lifecycle, scope, signal, now, sendProgress: declaresTasks ? undefined : sendProgress };
  if (waitsToTheEnd(tool, call)) return waitWhile(first, (task) => !hasEnded(task), wait);
  // A question needs the handle, to be answered with.
  const untilMs = now() + tool.inlineBudgetMs;
  return waitWhile(first, ({ status }) => status === "working", { ...wait, untilMs });
}
