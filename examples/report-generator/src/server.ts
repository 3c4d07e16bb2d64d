/* A report generator over stdio, on SDK v2. */
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { openReportTasks } from "./report-tools.ts";

const tasks = await openReportTasks();

serveStdio(() => tasks.attach(new McpServer({ name: "report-generator", version: "1.0.0" })));
