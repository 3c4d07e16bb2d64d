/* The same report generator over stdio, on SDK v1. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { openReportTasks } from "./report-tools.ts";

const tasks = await openReportTasks();

await tasks
  .attach(new McpServer({ name: "report-generator", version: "1.0.0" }))
  .connect(new StdioServerTransport());
