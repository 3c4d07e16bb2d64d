import { toTask2025, type JsonObject, type TaskView } from "@longjobs/core";
import { jsonRpcError, rpcCode } from "../json-rpc-error.ts";

/** What a server declares. `tasks/list` is left out: then every task would have to be listed to whoever may read it. */
export const tasksCapability2025 = { tasks: { cancel: {}, requests: { tools: { call: {} } } } } as const;

/** Spec 2025-11-25 "Related Task Metadata": what belongs to a task says so. */
export function relatedTo(taskId: string): JsonObject {
  return { "io.modelcontextprotocol/related-task": { taskId } };
}

/**
 * `CreateTaskResult` of revision 2025-11-25.
 *
 * @param forModel - Spec "Creating Tasks": "a string intended to be passed as an immediate tool result to the model".
 */
export function toCreateTaskResult2025(view: TaskView, forModel: string | undefined): JsonObject {
  const task = toTask2025(view);
  if (forModel === undefined) return { task };
  return { task, _meta: { "io.modelcontextprotocol/model-immediate-response": forModel } };
}

/** The `task` of a call: `undefined` for a plain one. @throws -32602 for one that cannot be read. */
export function readTaskParam(task: unknown): { readonly ttl?: number } | undefined {
  if (task === undefined) return undefined;
  const { ttl } = (task ?? {}) as { readonly ttl?: unknown };
  const isWish = typeof task === "object" && task !== null && !Array.isArray(task);
  const isTtl = ttl === undefined || (typeof ttl === "number" && Number.isFinite(ttl) && ttl >= 0);
  if (!isWish || !isTtl)
    throw jsonRpcError(
      rpcCode.invalidParams,
      "task must be an object; its ttl, if there is one, milliseconds from 0.",
    );
  return ttl === undefined ? {} : { ttl: Math.min(Math.ceil(ttl), Number.MAX_SAFE_INTEGER) };
}

/** Spec 2025-11-25 "Tool-Level Negotiation": what is no task tool is not found as one. */
export function notAsTask(tool: string): Error {
  return jsonRpcError(rpcCode.methodNotFound, `The tool ${tool} cannot be called as a task.`);
}

/** Why a call that wants a task got a plain result, which may not be sent to it: the result's own words. */
export function refusedText(result: JsonObject): string {
  const [first] = (result["content"] ?? []) as readonly { readonly text?: string }[];
  return first?.text ?? "The call was refused before a task was made.";
}
