/*
 * Takes large CSV files, sums them up as a durable task, and gives the result as a file. The tools and the endpoint for the
 * bytes are in one server, over one log.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join, resolve } from "node:path";
import { createFiles, toNodeListener } from "@longjobs/files";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { addLines, type PartialSum } from "./sales.ts";

const dir = resolve(process.env["DATA_DIR"] ?? "./data");
const port = Number(process.env["PORT"] ?? 3000);
for (const name of ["inbox", "outbox"]) await mkdir(join(dir, name), { recursive: true });
const store = await WalTaskStore.open({ dir: join(dir, "state/tasks") });

// #region files
const files = createFiles({
  store,
  staging: join(dir, "state/staging"),
  roots: {
    inbox: { path: join(dir, "inbox"), write: true },
    outbox: { path: join(dir, "outbox") },
  },
  http: { baseUrl: `http://127.0.0.1:${port}/files` },
  scope: null,
});
// #endregion

// #region task
const tasks = createTasks({ store, scope: null });
tasks.taskTool(
  "sum_up_sales",
  {
    title: "Sum up sales",
    description:
      "Sums up a CSV file (id,region,cents) of the root inbox. The result is a file in the root outbox.",
    inputSchema: z.object({ path: z.string().describe("As the commit of the upload named it.") }),
    onInterrupted: "resume",
  },
  async ({ path }, task) => {
    await using file = await files.openFile({ root: "inbox", path });
    let sum = (task.checkpoint ?? { offset: 0, rows: 0, totals: {} }) as PartialSum;
    while (sum.offset < file.sizeBytes) {
      const end = Math.min(sum.offset + 4 * 1024 * 1024, file.sizeBytes);
      const bytes = new Uint8Array(await new Response(file.stream(sum.offset, end)).arrayBuffer());
      sum = addLines(sum, bytes);
      task.signal.throwIfAborted();
      await task.progress({ message: `${sum.rows} rows`, done: sum.offset, total: file.sizeBytes });
      await task.saveCheckpoint(sum);
    }
    const result = `${task.taskId}.json`;
    await writeFile(join(dir, "state", result), JSON.stringify({ rows: sum.rows, totals: sum.totals }));
    await rename(join(dir, "state", result), join(dir, "outbox", result));
    return { content: [{ type: "text", text: `Summed up ${sum.rows} rows. Download outbox: ${result}` }] };
  },
);
// #endregion

// #region page
const page = await readFile(new URL("page.html", import.meta.url));
const tusClient = await readFile(new URL("../node_modules/tus-js-client/dist/tus.min.js", import.meta.url));
/** The page for people: it needs a URL that takes uploads, and the client of TUS. */
async function servePage(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const send = (type: string, body: Buffer | string): void =>
    void response.writeHead(200, { "content-type": type }).end(body);
  if (request.url === "/grant" && request.method === "POST") {
    const endpoint = await files.createUploadUrl({ root: "inbox", directory: "from-people" });
    return send("application/json", JSON.stringify({ endpoint }));
  }
  return request.url === "/tus.min.js" ? send("text/javascript", tusClient) : send("text/html", page);
}
// #endregion

const handler = createMcpHandler(() => {
  const mcp = new McpServer({ name: "file-exchange", version: "1.0.0" });
  return files.attach(tasks.attach(mcp));
});
const serveMcp = toNodeHandler(handler);
const serveFiles = toNodeListener(files);
const server = createServer((request, response) => {
  if (request.url?.startsWith("/files") === true) serveFiles(request, response);
  else if (request.url?.startsWith("/mcp") === true) void serveMcp(request, response);
  else void servePage(request, response);
});
server.listen(port, "127.0.0.1", () => process.send?.("listening"));
