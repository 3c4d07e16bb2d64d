import { TASKS_EXTENSION_ID } from "@longjobs/core";
import type { DetailedTask, JsonObject, TaskView } from "@longjobs/core";
import { givenKey } from "./idempotency-key.ts";
import type { InlineClock } from "./inline-clock.ts";
import { jsonRpcError, missingTasksExtension, rpcCode } from "./json-rpc-error.ts";
import { prepareCall, type PrepareContext, type PreparedCall } from "./prepare-call.ts";
import { runTool, type RunToolContext } from "./run-tool.ts";
import type { ScopeResolver } from "./scope.ts";
import { serveElsewhere } from "./serve-elsewhere.ts";
import { serveOnce } from "./serve-once.ts";
import { isChecked, serveWork } from "./serve-work.ts";
import { taskOptions } from "./task-options.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** What a call is answered with. */
export type Served =
  | { readonly kind: "result"; readonly result: JsonObject }
  /** With `found` the task is one that an earlier call with the same idempotency key made, as it is now. */
  | { readonly kind: "task"; readonly view: TaskView; readonly found?: DetailedTask }
  | Exclude<PreparedCall, { kind: "ready" }>;

/** What serving calls needs. */
export interface ServeContext extends PrepareContext, RunToolContext {
  readonly resolveScope: ScopeResolver;
  readonly clock: InlineClock;
  /** True when the work of all tools is done elsewhere. */
  readonly elsewhere: boolean;
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
  const key = givenKey(tool, call);
  if (key !== undefined) return serveOnce({ tool, args, call, scope, key }, context);
  const prepared = await prepareCall(tool, args, call, scope, context);
  if (prepared.kind !== "ready") return prepared;
  const { clock, lifecycle } = context;
  const options = taskOptions(tool, prepared, call, scope);
  if (context.elsewhere)
    return serveElsewhere(options, { tool, call, scope, lifecycle, clock, keyed: false });
  const attempt = lifecycle.begin(options);
  const { outputSchema, request } = call;
  const run = () =>
    runTool(
      tool,
      prepared.arguments,
      { attempt, scope, meta: request.meta, outputSchema, wholeResult: isChecked(tool, call) },
      context,
    );
  const abandon = (): void => lifecycle.abandonRequest(attempt);
  // Until something has been sent nobody could reach the work; afterwards closing a connection means nothing.
  call.signal.addEventListener("abort", abandon);
  if (call.signal.aborted) abandon();
  try {
    return await serveWork({ tool, call, scope, lifecycle, clock, attempt, run, keyed: false });
  } finally {
    call.signal.removeEventListener("abort", abandon);
  }
}

function needsTasks(tool: TaskTool, call: ToolCall): Error {
  if (call.modern) return missingTasksExtension(TASKS_EXTENSION_ID);
  return jsonRpcError(rpcCode.methodNotFound, `The tool ${tool.name} can only be called as a task.`);
}
