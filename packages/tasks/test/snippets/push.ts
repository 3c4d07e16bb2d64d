import type { TaskStore } from "@longjobs/core";
import { createTasks, type Tasks } from "@longjobs/tasks";
import type { Client } from "@modelcontextprotocol/client";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";

// #region http
export function serveWithPush(store: TaskStore) {
  const tasks: Tasks = createTasks({ store, scope: null });
  const factory = () => tasks.attach(new McpServer({ name: "reports", version: "1.0.0" }));
  const handler = tasks.wrapHandler(createMcpHandler(factory));
  return { tasks, handler, listener: toNodeHandler(handler) };
}
// #endregion

// #region stdio
export function serveStdioWithPush(tasks: Tasks) {
  const factory = () => tasks.attach(new McpServer({ name: "reports", version: "1.0.0" }));
  return serveStdio(factory, { transport: tasks.wrapTransport(new StdioServerTransport()) });
}
// #endregion

// #region client
export async function follow(client: Client, taskIds: readonly string[], tell: (task: object) => void) {
  client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method === "notifications/tasks") tell({ ...params });
  };
  // The types of the client do not know of tasks yet.
  const filter: object = { taskIds };
  const subscription = await client.listen(filter);
  return subscription.closed;
}
// #endregion
