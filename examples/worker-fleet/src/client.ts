import { setTimeout as delay } from "node:timers/promises";

/** A task as `tasks/get` shows it. */
export interface Task {
  readonly status: string;
  readonly result?: { readonly content: readonly object[] };
  readonly error?: { readonly message: string };
}

const deadlineMs = 60_000;

/** Calls a tool as a client with the Tasks extension, and gives the id of the task. */
export async function callTool(port: number, name: string, args: object): Promise<string> {
  const { taskId } = (await send(port, "tools/call", name, { name, arguments: args })) as { taskId: string };
  return taskId;
}

/** Polls a task until it has ended. */
export async function until(port: number, taskId: string): Promise<Task> {
  const endMs = Date.now() + deadlineMs;
  for (;;) {
    const task = (await send(port, "tasks/get", taskId, { taskId })) as Task;
    if (["completed", "failed", "cancelled"].includes(task.status)) return task;
    if (Date.now() > endMs) throw new Error(`Task ${taskId} is ${task.status} after ${deadlineMs} ms.`);
    await delay(200);
  }
}

async function send(port: number, method: string, name: string, params: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      "mcp-name": name,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "fleet-client", version: "1.0.0" },
          "io.modelcontextprotocol/clientCapabilities": {
            extensions: { "io.modelcontextprotocol/tasks": {} },
          },
        },
      },
    }),
  });
  const body = await response.text();
  const json = body.startsWith("{") ? body : (/^data: (.*)$/m.exec(body)?.[1] ?? "{}");
  const { error, result } = JSON.parse(json) as {
    readonly error?: { readonly message: string };
    readonly result?: unknown;
  };
  if (error !== undefined) throw new Error(error.message);
  return result;
}
