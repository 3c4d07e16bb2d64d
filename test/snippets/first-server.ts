// #region first-server
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const tasks = createTasks({ store: await WalTaskStore.open({ dir: "./tasks" }) });
tasks.taskTool("count", { inputSchema: z.object({ to: z.int() }) }, async ({ to }, task) => {
  for (let done = 1; done <= to; done += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await task.progress({ done, total: to });
  }
  return { content: [{ type: "text", text: `Counted to ${to}.` }] };
});
serveStdio(() => tasks.attach(new McpServer({ name: "counter", version: "1.0.0" })));
// #endregion
