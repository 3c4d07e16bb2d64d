// #region server
import { createServer } from "node:http";
import { resolve } from "node:path";
import { createFiles, toNodeListener } from "@longjobs/files";
import { WalTaskStore } from "@longjobs/store-wal";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";

const port = Number(process.env["PORT"] ?? 3000);
const files = createFiles({
  store: await WalTaskStore.open({ dir: "./state/tasks" }),
  staging: resolve("./state/staging"),
  roots: { inbox: { path: resolve("./inbox"), write: true } },
  http: { baseUrl: `http://127.0.0.1:${port}/files` },
  scope: null,
});

const handler = createMcpHandler(() => files.attach(new McpServer({ name: "inbox", version: "1.0.0" })));
const serveMcp = toNodeHandler(handler);
const serveFiles = toNodeListener(files);
createServer((request, response) => {
  if (request.url?.startsWith("/files")) serveFiles(request, response);
  else void serveMcp(request, response);
}).listen(port, "127.0.0.1");
// #endregion
