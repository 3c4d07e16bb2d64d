import { assertIdempotencyKey, fingerprintJson, isLongJobsError, toToolError } from "@longjobs/core";
import type { FoundTask, Idempotency } from "@longjobs/core";
import { hasEnded, toRepeatedAnswer } from "./call-answer.ts";
import type { GivenKey } from "./idempotency-key.ts";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import { prepareCall } from "./prepare-call.ts";
import { runTool } from "./run-tool.ts";
import type { ServeContext, Served } from "./serve-tool-call.ts";
import { serveDispatched } from "./serve-elsewhere.ts";
import { isChecked, serveWork, waitsToTheEnd } from "./serve-work.ts";
import { taskOptions } from "./task-options.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";
import { waitWhile } from "./wait-for-task.ts";

/** A call whose arguments have been checked, and the key it came with. */
export interface KeyedCall {
  readonly tool: TaskTool;
  readonly args: unknown;
  readonly call: ToolCall;
  readonly scope: string | undefined;
  readonly key: GivenKey;
}

/**
 * Serves a call with an idempotency key. The first one is recorded before its handler starts, and a disconnect does not
 * abort it: its client comes again. A repeat is answered from the record as it is now, or waits where its client waits.
 *
 * @throws what a call without a key throws; `idempotency_conflict` and `invalid_request`, unless a model wrote the key: it gets
 *   them as a tool error that it can repair.
 */
export async function serveOnce(keyed: KeyedCall, context: ServeContext): Promise<Served> {
  const { call, key } = keyed;
  try {
    assertIdempotencyKey(key.value, key.param);
    const fingerprint = await fingerprintJson(call.rawArguments);
    return await serveKeyed(keyed, { key: key.value, fingerprint, param: key.param }, context);
  } catch (error) {
    const ofKey = isLongJobsError(error, "idempotency_conflict") || isLongJobsError(error, "invalid_request");
    // A call that wants a task can only be answered by one, or by an error.
    if (!ofKey || !key.byModel || call.taskWish !== undefined) throw error;
    return { kind: "result", result: toToolError(error, context.limits) };
  }
}

async function serveKeyed(
  keyed: KeyedCall,
  idempotency: Idempotency,
  context: ServeContext,
): Promise<Served> {
  const { args, call, scope, tool } = keyed;
  const { clock, lifecycle } = context;
  if (tool.config.prepare !== undefined) {
    // A repeat is not asked again: the answers to its questions went into the task that is there.
    const work = { tool: tool.name };
    const found = await lifecycle.findOnce({ work, idempotency, ...(scope === undefined ? {} : { scope }) });
    if (found !== undefined) return serveFound(found, keyed, context);
  }
  const prepared = await prepareCall(tool, args, call, scope, context);
  if (prepared.kind !== "ready") return prepared;
  const options = taskOptions(tool, prepared, call, scope);
  if (context.elsewhere) {
    const { found, view } = await lifecycle.dispatchOnce({ ...options, idempotency });
    if (found !== undefined) return serveFound(found, keyed, context);
    return serveDispatched(view, { tool, call, scope, lifecycle, clock, keyed: true });
  }
  const { attempt, found } = await lifecycle.createOnce({ ...options, idempotency });
  if (found !== undefined) return serveFound(found, keyed, context);
  const { outputSchema, request } = call;
  const run = () =>
    runTool(
      tool,
      prepared.arguments,
      { attempt, scope, meta: request.meta, outputSchema, wholeResult: isChecked(tool, call) },
      context,
    );
  return serveWork({ tool, call, scope, lifecycle, clock, attempt, run, keyed: true });
}

async function serveFound(
  { task, view }: FoundTask,
  { call, scope, tool }: KeyedCall,
  context: ServeContext,
): Promise<Served> {
  // Such a client has asked for a task, and fetches the result itself.
  if (call.taskWish !== undefined) return { kind: "task", view, found: task };
  const latest = waitsToTheEnd(tool, call) ? await untilEnded(task, call, scope, context) : task;
  if (hasEnded(latest)) return { kind: "result", result: toRepeatedAnswer(latest) };
  return { kind: "task", view, found: task };
}

async function untilEnded(
  task: FoundTask["task"],
  { sendProgress, signal }: ToolCall,
  scope: string | undefined,
  { lifecycle }: ServeContext,
): Promise<FoundTask["task"]> {
  try {
    return await waitWhile(task, (now) => !hasEnded(now), { lifecycle, scope, signal, sendProgress });
  } catch (error) {
    // The client ended its call: nobody is told anything, and nothing is wrong.
    if (signal.aborted) throw jsonRpcError(rpcCode.internalError, "The call was cancelled.");
    throw error;
  }
}
