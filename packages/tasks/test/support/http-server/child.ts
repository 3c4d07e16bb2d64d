/*
 * A real server over HTTP on the built packages, with its tasks in a log: `child.ts <dir> <port>`. Tells its parent
 * the port it listens on, and each task that changes.
 */
import { createServer } from "node:http";

import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const [dir = "", port = "0"] = process.argv.slice(2);
const store = await WalTaskStore.open({ dir });
const tasks = createTasks({ store, scope: null, pollIntervalMs: 20 });
tasks.lifecycle.onTaskChanged(({ taskId, status }) => process.send?.({ taskId, status }));

tasks.taskTool(
  "greet",
  {
    inputSchema: z.object({ greeting: z.string() }),
    outputSchema: z.object({ greeted: z.string() }),
    onInterrupted: "resume",
    // The tests kill the server at every step: that is not the task's fault.
    maxAttempts: 10,
  },
  async ({ greeting }, task) => {
    const requestedSchema = {
      type: "object",
      properties: { name: { type: "string" } },
      required: ["name"],
    } as const;
    const { who } = await task.requestInput({
      who: { method: "elicitation/create", params: { mode: "form", message: "Who?", requestedSchema } },
    });
    const { name } = (who as { content: { name: string } }).content;
    return {
      content: [{ type: "text", text: `${greeting}, ${name}!` }],
      structuredContent: { greeted: name },
    };
  },
);

tasks.taskTool("wait", { inlineBudgetMs: 0 }, async (_args, task) => {
  await new Promise<never>((_resolve, reject) => {
    task.signal.addEventListener("abort", () => reject(task.signal.reason as Error));
  });
});

tasks.taskTool("quick", { inlineBudgetMs: 0 }, async (_args, task) => {
  await task.progress({ done: 1, total: 2 });
  return { content: [{ type: "text", text: "finished before the crash" }] };
});

const handler = createMcpHandler(() => {
  const mcp = new McpServer({ name: "longjobs-test", version: "1.0.0" });
  tasks.attach(mcp);
  return mcp;
});
const serve = toNodeHandler(handler);
const server = createServer((request, response) => void serve(request, response));
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  process.send?.({ port: typeof address === "object" ? address?.port : undefined });
});
