import { normalizeJson, TASKS_EXTENSION_ID } from "@longjobs/core";
import type { JsonObject, Outcome, TaskAttempt, TaskLifecycle, TaskView } from "@longjobs/core";
import { checkToolResult } from "./check-result.ts";
import { jsonRpcError, missingTasksExtension, rpcCode } from "./json-rpc-error.ts";
import { prepareCall, type PrepareContext, type PreparedCall } from "./prepare-call.ts";
import type { ScopeResolver } from "./scope.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool, ToolTask } from "./tool-config.ts";

/** What a call is answered with. */
export type Served =
  | { readonly kind: "result"; readonly result: JsonObject }
  | { readonly kind: "task"; readonly view: TaskView }
  | Exclude<PreparedCall, { kind: "ready" }>;

/** What serving calls needs. */
export interface ServeContext extends PrepareContext {
  readonly lifecycle: TaskLifecycle;
  readonly resolveScope: ScopeResolver;
}

/**
 * Serves one call whose arguments have been checked: `prepare`, then the work. A client that declares the
 * Tasks extension on this very request gets the plain result within the inline budget, else a handle; any
 * other client gets the result when the work is done.
 *
 * @throws a JSON-RPC error: -32021 or -32601 where the tool needs tasks and the client has none, the handler's
 *   own protocol error, or a fault of the server.
 */
export async function serveToolCall(
  tool: TaskTool,
  args: unknown,
  call: ToolCall,
  context: ServeContext,
): Promise<Served> {
  if (tool.taskSupport === "required" && !call.declaresTasks) throw needsTasks(tool, call);
  const scope = await context.resolveScope(call.request);
  const prepared = await prepareCall(tool, args, call, scope, context);
  if (prepared.kind !== "ready") return prepared;
  const attempt = beginTask(tool, prepared, call, scope, context.lifecycle);
  const abandon = (): void => context.lifecycle.abandonRequest(attempt);
  // Until something has been sent nobody could reach the work; afterwards closing a connection means nothing.
  call.signal.addEventListener("abort", abandon);
  if (call.signal.aborted) abandon();
  try {
    return await (call.declaresTasks
      ? serveWithTasks(tool, prepared.arguments, call, scope, attempt, context.lifecycle)
      : serveToTheEnd(tool, prepared.arguments, call, scope, attempt, context.lifecycle));
  } finally {
    call.signal.removeEventListener("abort", abandon);
  }
}

async function serveWithTasks(
  tool: TaskTool,
  args: unknown,
  call: ToolCall,
  scope: string | undefined,
  attempt: TaskAttempt,
  lifecycle: TaskLifecycle,
): Promise<Served> {
  // Without a budget the task is recorded before its handler starts: a rejected create starts nothing.
  if (tool.inlineBudgetMs === 0) await attempt.promote();
  const running = runTool(tool, args, call, scope, attempt, lifecycle);
  if (!attempt.recorded) await firstOf(running, attempt, tool.inlineBudgetMs);
  if (attempt.ended && !attempt.recorded) return { kind: "result", result: toAnswer(await running) };
  return { kind: "task", view: await attempt.promote() };
}

async function serveToTheEnd(
  tool: TaskTool,
  args: unknown,
  call: ToolCall,
  scope: string | undefined,
  attempt: TaskAttempt,
  lifecycle: TaskLifecycle,
): Promise<Served> {
  const stop = call.sendProgress === undefined ? undefined : attempt.onProgress(call.sendProgress);
  const outcome = await runTool(tool, args, call, scope, attempt, lifecycle);
  stop?.();
  if (outcome.status === "abandoned" && attempt.recorded) {
    // The handler may have ended its task itself: then the record has the answer.
    const task = await lifecycle.getTask(attempt.taskId, { scope });
    if (task.status === "completed" || task.status === "failed" || task.status === "cancelled") {
      return { kind: "result", result: toAnswer(task) };
    }
  }
  return { kind: "result", result: toAnswer(outcome) };
}

function beginTask(
  tool: TaskTool,
  prepared: Extract<PreparedCall, { kind: "ready" }>,
  call: ToolCall,
  scope: string | undefined,
  lifecycle: TaskLifecycle,
): TaskAttempt {
  const { retentionMs, pollIntervalMs } = tool.config;
  const args = prepared.changed ? normalizeJson(prepared.arguments, "arguments") : call.rawArguments;
  // Without a handle there is no way to put a question: then no kind of question is supported.
  const client = call.declaresTasks ? call.client : { ...call.client, capabilities: {} };
  return lifecycle.begin({
    work: { tool: tool.name, arguments: args, client },
    ...(scope === undefined ? {} : { scope }),
    ...(retentionMs === undefined ? {} : { retentionMs }),
    ...(pollIntervalMs === undefined ? {} : { pollIntervalMs }),
  });
}

function runTool(
  tool: TaskTool,
  args: unknown,
  call: ToolCall,
  scope: string | undefined,
  attempt: TaskAttempt,
  lifecycle: TaskLifecycle,
): Promise<Outcome> {
  return lifecycle.run(attempt, async () => {
    const result = await tool.handler(args as never, toToolTask(tool, attempt, call, scope));
    if (result === undefined && attempt.ended) return undefined;
    return (await checkToolResult(tool.name, result, call.outputSchema)) as JsonObject;
  });
}

/** The handle with what belongs to the call; a result the handler completes with is checked like a returned one. */
function toToolTask(
  tool: TaskTool,
  attempt: TaskAttempt,
  call: ToolCall,
  scope: string | undefined,
): ToolTask {
  return {
    taskId: attempt.taskId,
    attempt: attempt.attempt,
    get checkpoint() {
      return attempt.checkpoint;
    },
    signal: attempt.signal,
    scope,
    meta: call.request.meta,
    progress: (progress) => attempt.progress(progress),
    requestInput: (requests) => attempt.requestInput(requests),
    resumeInput: () => attempt.resumeInput(),
    saveCheckpoint: (value) => attempt.saveCheckpoint(value),
    complete: async (result) =>
      attempt.complete((await checkToolResult(tool.name, result, call.outputSchema)) as JsonObject),
    fail: (error) => attempt.fail(error),
    cancelled: (statusMessage) => attempt.cancelled(statusMessage),
  };
}

/** Resolves when the work is done, the task is being recorded, or the budget is over. */
async function firstOf(running: Promise<Outcome>, attempt: TaskAttempt, budgetMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ignorePromotion: (() => void) | undefined;
  const overOrPromoted = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, budgetMs);
    ignorePromotion = attempt.onPromote(resolve);
  });
  await Promise.race([running, overOrPromoted]);
  clearTimeout(timer);
  ignorePromotion?.();
}

/** The answer of a synchronous call. @throws the handler's protocol error, or why there is no answer. */
function toAnswer(outcome: Outcome | { readonly status: "completed" | "failed" | "cancelled" }): JsonObject {
  const { status } = outcome;
  if (status === "completed" && "result" in outcome) return outcome.result;
  if (status === "failed" && "error" in outcome) {
    throw jsonRpcError(outcome.error.code, outcome.error.message, outcome.error.data);
  }
  if (status === "abandoned" && "reason" in outcome) throw outcome.reason;
  throw jsonRpcError(rpcCode.internalError, "The call was cancelled.", {
    code: "request_cancelled",
    retryable: true,
  });
}

function needsTasks(tool: TaskTool, call: ToolCall): Error {
  if (call.modern) return missingTasksExtension(TASKS_EXTENSION_ID);
  return jsonRpcError(rpcCode.methodNotFound, `The tool ${tool.name} can only be called as a task.`);
}
