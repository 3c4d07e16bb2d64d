/* A real server over stdio on the built packages: what a host starts. */
import { MemoryTaskStore } from "@longjobs/core";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const tasks = createTasks({ store: new MemoryTaskStore(), pollIntervalMs: 20 });

tasks.taskTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }, task) => ({
  content: [{ type: "text", text: `${a + b} for ${String(task.scope)}` }],
}));

tasks.taskTool("greet", {}, async (_args, task) => {
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } } as const;
  const { who } = await task.requestInput({
    who: { method: "elicitation/create", params: { mode: "form", message: "Who?", requestedSchema } },
  });
  return { content: [{ type: "text", text: JSON.stringify(who) }] };
});

serveStdio(
  () => {
    const mcp = new McpServer({ name: "longjobs-test", version: "1.0.0" });
    tasks.attach(mcp);
    return mcp;
  },
  { transport: tasks.wrapTransport(new StdioServerTransport()) },
);
