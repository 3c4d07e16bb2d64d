/*
 * The server that the official conformance suite is run against: `PORT` (default 3000), answers on `/mcp`.
 * Keeps its tasks in memory, or with STORE=wal in a log in a fresh folder.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryTaskStore, type TaskStore } from "@longjobs/core";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { registerFixtureTools } from "./fixture-tools.ts";

const port = Number(process.env["PORT"] ?? 3000);
const { store, removeFolder } = await openStore(process.env["STORE"] ?? "memory");

// The suite sends no credentials: whoever can reach this server shares its tasks.
const tasks = createTasks({ store, scope: null, pollIntervalMs: 100 });
registerFixtureTools(tasks);

const handler = createMcpHandler(() => {
  const mcp = new McpServer({ name: "longjobs-conformance-server", version: "1.0.0" });
  mcp.registerTool(
    "greet",
    { description: "Greets.", inputSchema: z.object({ name: z.string() }) },
    ({ name }) => ({ content: [{ type: "text", text: `Hello, ${name}!` }] }),
  );
  tasks.attach(mcp);
  return mcp;
});

const serveMcp = toNodeHandler(handler);
const server = createServer((request, response) => {
  if (new URL(request.url ?? "/", "http://localhost").pathname === "/mcp") void serveMcp(request, response);
  else response.writeHead(404).end();
});
server.listen(port, "127.0.0.1", () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === "object" ? address?.port : port}/mcp`);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void stop());

async function stop(): Promise<void> {
  server.close();
  server.closeAllConnections();
  await handler.close();
  await tasks.close({ shutdownGraceMs: 1_000 });
  await store.close();
  await removeFolder();
}

async function openStore(kind: string): Promise<{ store: TaskStore; removeFolder: () => Promise<void> }> {
  if (kind === "memory") return { store: new MemoryTaskStore(), removeFolder: async () => undefined };
  if (kind !== "wal") throw new Error(`STORE must be memory or wal, not ${kind}.`);
  const dir = await mkdtemp(join(tmpdir(), "longjobs-conformance-"));
  return { store: await WalTaskStore.open({ dir }), removeFolder: () => rm(dir, { recursive: true }) };
}
