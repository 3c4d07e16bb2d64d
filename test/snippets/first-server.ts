// #region first-server
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const tasks = createTasks({ store: await WalTaskStore.open({ dir: "./tasks" }) });
const inputSchema = z.object({ to: z.int() });
tasks.taskTool("count", { inputSchema, onInterrupted: "resume" }, async ({ to }, task) => {
  for (let done = Number(task.checkpoint ?? 0) + 1; done <= to; done += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await task.saveCheckpoint(done);
  }
  return { content: [{ type: "text", text: `Counted to ${to}.` }] };
});
serveStdio(() => tasks.attach(new McpServer({ name: "counter", version: "1.0.0" })));
// #endregion
