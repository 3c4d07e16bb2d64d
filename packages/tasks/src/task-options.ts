import type { CreateTaskOptions, JsonObject, TaskWork } from "@longjobs/core";
import type { PreparedCall } from "./prepare-call.ts";
import type { TaskWish, ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** What the task of a call is made of. */
export function taskOptions(
  tool: TaskTool,
  prepared: Extract<PreparedCall, { kind: "ready" }>,
  call: ToolCall,
  scope: string | undefined,
): CreateTaskOptions & { readonly work: TaskWork } {
  const { pollIntervalMs } = tool.config;
  const retentionMs = wishedRetention(tool, call.taskWish);
  const client = call.declaresTasks ? call.client : { ...call.client, capabilities: askable(tool, call) };
  return {
    work: {
      tool: tool.name,
      arguments: prepared.recorded,
      ...(prepared.isFinal ? { prepared: true as const } : {}),
      client,
    },
    ...(scope === undefined ? {} : { scope }),
    ...(retentionMs === undefined ? {} : { retentionMs }),
    ...(pollIntervalMs === undefined ? {} : { pollIntervalMs }),
  };
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
