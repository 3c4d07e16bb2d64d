// #region stdio
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const store = await WalTaskStore.open({ dir: "./tasks" });
const tasks = createTasks({ store });

tasks.taskTool(
  "count",
  { description: "Counts.", inputSchema: z.object({ to: z.int().min(1) }), fallback: "wait" },
  async ({ to }, task) => {
    for (let done = 1; done <= to; done += 1) {
      await task.progress({ message: "Counting", done, total: to });
      await new Promise((resolve) => setTimeout(resolve, 300));
      task.signal.throwIfAborted();
    }
    return { content: [{ type: "text", text: `Counted to ${to}.` }] };
  },
);

serveStdio(() => tasks.attach(new McpServer({ name: "counter", version: "1.0.0" })));
// #endregion
