/* A real server of SDK v1 over stdio on the built packages: what most hosts start today. */
import { MemoryTaskStore } from "@longjobs/core";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const tasks = createTasks({ store: new MemoryTaskStore(), pollIntervalMs: 20 });

tasks.taskTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }, task) => ({
  content: [{ type: "text", text: `${a + b} for ${String(task.scope)}` }],
}));

tasks.taskTool("greet", {}, async (_args, task) => ({
  content: [{ type: "text", text: `Hello, ${await task.ask({ prompt: "Who?" })}` }],
}));

await tasks
  .attach(new McpServer({ name: "longjobs-test", version: "1.0.0" }))
  .connect(new StdioServerTransport());
