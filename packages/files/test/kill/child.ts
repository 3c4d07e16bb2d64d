/*
 * A server over one directory: the log, the staging, a root; the tools over HTTP and the endpoint. It says its port, and
 * waits to be killed. Against the built packages, as users have them.
 */
import { createServer } from "node:http";
import { join } from "node:path";
import { createFiles, toNodeListener } from "@longjobs/files";
import { WalTaskStore } from "@longjobs/store-wal";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";

const dir = process.env["FILES_DIR"] ?? "";
const server = createServer();
server.listen(0, "127.0.0.1");
await new Promise<void>((resolve) => {
  server.once("listening", resolve);
});
const address = server.address();
const port = address !== null && typeof address === "object" ? address.port : 0;

const files = createFiles({
  store: await WalTaskStore.open({ dir: join(dir, "store") }),
  staging: join(dir, "staging"),
  roots: { box: { path: join(dir, "box"), write: true } },
  http: { baseUrl: `http://127.0.0.1:${port}/files` },
  scope: null,
});
const serveMcp = toNodeHandler(
  createMcpHandler(() => files.attach(new McpServer({ name: "kill", version: "1.0.0" }))),
);
const serveFiles = toNodeListener(files);
server.on("request", (request, response) => {
  if (request.url?.startsWith("/files") === true) serveFiles(request, response);
  else void serveMcp(request, response);
});
process.send?.({ port });
