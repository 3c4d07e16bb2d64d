import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { CallToolResultSchema, CreateTaskResultSchema, type Task } from "@modelcontextprotocol/sdk/types.js";

/** Calls a tool as a task, and gives the task. */
export async function callAsTask(
  client: Client,
  name: string,
  args: object = {},
  task: object = {},
): Promise<Task> {
  const params = { name, arguments: { ...args }, task };
  const created = await client.request({ method: "tools/call", params }, CreateTaskResultSchema);
  return created.task;
}

/** The three task methods, as calls of a client. */
export function taskMethods(client: Client): readonly ((taskId: string) => Promise<unknown>)[] {
  const calls = client.experimental.tasks;
  return [
    (taskId) => calls.getTask(taskId),
    (taskId) => calls.getTaskResult(taskId, CallToolResultSchema),
    (taskId) => calls.cancelTask(taskId),
  ];
}

/** Everything that the SDK's own way of calling gives; without `task` it decides by the list. */
export async function callStream(
  client: Client,
  name: string,
  task: Record<string, unknown> | undefined = {},
): Promise<unknown[]> {
  const messages: unknown[] = [];
  const options = task === undefined ? {} : { task };
  for await (const message of client.experimental.tasks.callToolStream({ name }, undefined, options))
    messages.push(message);
  return messages;
}

/** An id that no task has. */
export const never = "00000000-0000-4000-8000-000000000000";
