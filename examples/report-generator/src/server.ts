/* A report generator over stdio. Its tasks are kept in `TASKS_DIR`, so that a report outlives its server. */
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { registerReportTools } from "./report-tools.ts";

const store = await WalTaskStore.open({ dir: process.env["TASKS_DIR"] ?? "./tasks" });
const tasks = createTasks({ store });
registerReportTools(tasks, Number(process.env["SECTION_MS"] ?? 2_000));

serveStdio(() => tasks.attach(new McpServer({ name: "report-generator", version: "1.0.0" })));
