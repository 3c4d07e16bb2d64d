// #region stdio
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const tasks = createTasks({ store: await WalTaskStore.open({ dir: "./tasks" }) });

tasks.taskTool("publish", { description: "Publishes the report." }, async (_args, task) => {
  const audience = await task.ask({ prompt: "For whom?", choices: ["everyone", "the team"] });
  return { content: [{ type: "text", text: `Published for ${audience}.` }] };
});

const mcp = tasks.attach(new McpServer({ name: "publisher", version: "1.0.0" }));
await mcp.connect(new StdioServerTransport());
// #endregion
