import { TASKS_EXTENSION_ID } from "@longjobs/core";
import type { JsonObject, Outcome, TaskAttempt, TaskLifecycle, TaskView } from "@longjobs/core";
import { jsonRpcError, missingTasksExtension, rpcCode } from "./json-rpc-error.ts";
import { prepareCall, type PrepareContext, type PreparedCall } from "./prepare-call.ts";
import { runTool, type RunToolContext } from "./run-tool.ts";
import type { ScopeResolver } from "./scope.ts";
import type { TaskWish, ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** What a call is answered with. */
export type Served =
  | { readonly kind: "result"; readonly result: JsonObject }
  | { readonly kind: "task"; readonly view: TaskView }
  | Exclude<PreparedCall, { kind: "ready" }>;

/** What serving calls needs. */
export interface ServeContext extends PrepareContext, RunToolContext {
  readonly resolveScope: ScopeResolver;
}

/**
 * Serves one call whose arguments have been checked: `prepare`, then the work. A client that declares the
 * Tasks extension on this very request gets the plain result within the inline budget, else a handle; any
 * other client gets the same with the fallback `tools`, and with `wait` the result when the work is done.
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
  const asTask = call.declaresTasks || call.taskWish !== undefined;
  if (tool.taskSupport === "required" && !asTask) throw needsTasks(tool, call);
  const scope = await context.resolveScope(call.request);
  const prepared = await prepareCall(tool, args, call, scope, context);
  if (prepared.kind !== "ready") return prepared;
  const attempt = beginTask(tool, prepared, call, scope, context.lifecycle);
  const { meta } = call.request;
  const run = (): Promise<Outcome> =>
    runTool(tool, prepared.arguments, { attempt, scope, meta, outputSchema: call.outputSchema }, context);
  const abandon = (): void => context.lifecycle.abandonRequest(attempt);
  // Until something has been sent nobody could reach the work; afterwards closing a connection means nothing.
  call.signal.addEventListener("abort", abandon);
  if (call.signal.aborted) abandon();
  try {
    if (call.taskWish !== undefined) return await serveAsTask(call.taskWish, attempt, run);
    return await (call.declaresTasks || tool.fallback === "tools"
      ? serveWithHandle(tool, call, attempt, run)
      : serveToTheEnd(call, scope, attempt, context.lifecycle, run));
  } finally {
    call.signal.removeEventListener("abort", abandon);
  }
}

/** Always a handle, at once: such a client has asked for a task. It gets progress for the life of the task. */
async function serveAsTask(
  wish: TaskWish,
  attempt: TaskAttempt,
  run: () => Promise<Outcome>,
): Promise<Served> {
  const view = await attempt.promote();
  if (wish.progressFor !== undefined) attempt.onProgress(wish.progressFor(attempt.taskId));
  void run();
  return { kind: "task", view };
}

/** The result within the inline budget, else a handle. */
async function serveWithHandle(
  tool: TaskTool,
  call: ToolCall,
  attempt: TaskAttempt,
  run: () => Promise<Outcome>,
): Promise<Served> {
  // Without a budget the task is recorded before its handler starts: a rejected create starts nothing.
  if (tool.inlineBudgetMs === 0) await attempt.promote();
  // Listening comes first: a handler may save a checkpoint in its very first step.
  const promoted = untilPromoted(attempt);
  const stop = call.declaresTasks ? undefined : sendProgress(call, attempt);
  const running = run();
  if (!attempt.recorded) await firstOf(running, promoted, tool.inlineBudgetMs);
  stop?.();
  if (attempt.ended && !attempt.recorded) return { kind: "result", result: toAnswer(await running) };
  return { kind: "task", view: await attempt.promote() };
}

async function serveToTheEnd(
  call: ToolCall,
  scope: string | undefined,
  attempt: TaskAttempt,
  lifecycle: TaskLifecycle,
  run: () => Promise<Outcome>,
): Promise<Served> {
  const stop = sendProgress(call, attempt);
  const outcome = await run();
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
  const { pollIntervalMs } = tool.config;
  const retentionMs = wishedRetention(tool, call.taskWish);
  const client = call.declaresTasks ? call.client : { ...call.client, capabilities: askable(tool, call) };
  return lifecycle.begin({
    work: {
      tool: tool.name,
      arguments: prepared.recorded,
      ...(prepared.isFinal ? { prepared: true as const } : {}),
      client,
    },
    ...(scope === undefined ? {} : { scope }),
    ...(retentionMs === undefined ? {} : { retentionMs }),
    ...(pollIntervalMs === undefined ? {} : { pollIntervalMs }),
  });
}

/** Shorter wishes are not granted: a result must be there long enough to be fetched. */
export const minWishedMs = 60_000;

/** What a client wishes counts up to what the tool keeps; the engine's own maximum is above both. */
function wishedRetention(
  { config: { retentionMs } }: TaskTool,
  wish: TaskWish | undefined,
): number | null | undefined {
  if (wish?.ttl === undefined) return retentionMs;
  return Math.min(Math.max(wish.ttl, minWishedMs), retentionMs ?? Infinity);
}

/** The client itself while it waits for a task of 2025-11-25, and a model with the fallback tools. */
function askable(tool: TaskTool, { taskWish }: ToolCall): JsonObject {
  return { ...taskWish?.askable, ...fallbackCapabilities[tool.fallback] };
}

/**
 * What can be asked of a client without tasks: through the fallback tools a model passes forms and links on to its user;
 * while a call waits to the end there is no way to put any question.
 */
const fallbackCapabilities = { tools: { elicitation: { form: {}, url: {} } }, wait: {} } as const;

function sendProgress(call: ToolCall, attempt: TaskAttempt): (() => void) | undefined {
  return call.sendProgress === undefined ? undefined : attempt.onProgress(call.sendProgress);
}

function untilPromoted(attempt: TaskAttempt): Promise<void> {
  return new Promise((resolve) => {
    attempt.onPromote(resolve);
  });
}

/** Resolves when the work is done, the task is being recorded, or the budget is over. */
async function firstOf(running: Promise<Outcome>, promoted: Promise<void>, budgetMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, budgetMs);
  });
  await Promise.race([running, promoted, over]);
  clearTimeout(timer);
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
