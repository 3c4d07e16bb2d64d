// #region http
import { createServer } from "node:http";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const store = await WalTaskStore.open({ dir: "./tasks" });
const tasks = createTasks({ store, scope: null });

tasks.taskTool(
  "publish",
  { description: "Publishes a report.", inputSchema: z.object({ report: z.string() }) },
  async ({ report }, task) => {
    const { where } = await task.requestInput({
      where: {
        method: "elicitation/create",
        params: {
          mode: "form",
          message: `Where shall ${report} be published?`,
          requestedSchema: {
            type: "object",
            properties: { place: { type: "string" } },
            required: ["place"],
          },
        },
      },
    });
    if (where["action"] !== "accept")
      return { content: [{ type: "text", text: `${report} stays a draft.` }] };
    const { place } = where["content"] as { place: string };
    return { content: [{ type: "text", text: `${report} is published at ${place}.` }] };
  },
);

const handler = createMcpHandler(() => tasks.attach(new McpServer({ name: "publisher", version: "1.0.0" })));
const serve = toNodeHandler(handler);
const server = createServer((request, response) => void serve(request, response));
server.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/mcp`);
});
// #endregion
