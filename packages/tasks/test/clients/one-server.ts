/*
 * One server for every client: three tools, a document of its own, either SDK, any transport. Started as a program it serves
 * stdio: `one-server.ts <v1|v2> <dir>`.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks, type Tasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpHandler, McpServer as McpServerV2 } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

/** Which SDK the server is written with. */
export type Sdk = "v1" | "v2";

const info = { name: "one-server", version: "1.0.0" };

/** The tools, for whatever server they are attached to. */
export function registerTools(tasks: Tasks): void {
  const finished = new Set<string>();

  tasks.taskTool(
    "quick",
    {
      description: "Greets, and lets the slow job of that name end.",
      inputSchema: z.object({ name: z.string() }),
    },
    ({ name }) => {
      finished.add(name);
      return { content: [{ type: "text", text: `Hello, ${name}.` }] };
    },
  );

  tasks.taskTool(
    "slow",
    {
      description: "Works until quick greets it.",
      inputSchema: z.object({ name: z.string() }),
      inlineBudgetMs: 50,
    },
    async ({ name }, task) => {
      for (let done = 1; !finished.has(name); done += 1) {
        await task.progress({ message: `Waiting for ${name}`, done });
        await delay(20, undefined, { signal: task.signal });
      }
      return { content: [{ type: "text", text: `${name} is done.` }] };
    },
  );

  tasks.taskTool(
    "asking",
    { description: "Paints a wall.", onInterrupted: "resume" },
    async (_args, task) => {
      const colour = await task.ask({ prompt: "Which colour?", choices: ["red", "blue"] });
      return { content: [{ type: "text", text: `The wall is ${colour}.` }] };
    },
  );
}

/** A server of SDK v2: one for each request over HTTP, one for each connection elsewhere. */
export function newServerV2(tasks: Tasks): McpServerV2 {
  const server = new McpServerV2(info);
  server.registerResource("notes", "notes://one", {}, ({ href }) => ({
    contents: [{ uri: href, text: "A note." }],
  }));
  return tasks.attach(server);
}

/** A server of SDK v1: one for each session, or for each request without sessions. */
export function newServerV1(tasks: Tasks): McpServerV1 {
  const server = new McpServerV1(info);
  server.registerResource("notes", "notes://one", {}, ({ href }) => ({
    contents: [{ uri: href, text: "A note." }],
  }));
  return tasks.attach(server);
}

/** A server that listens. */
export interface Listening {
  readonly url: string;
  readonly close: () => void;
}

/** Serves SDK v2 over HTTP, to clients of both revisions. */
export function serveHttpV2(tasks: Tasks): Promise<Listening> {
  const serve = toNodeHandler(createMcpHandler(() => newServerV2(tasks)));
  return listen((request, response) => void serve(request, response));
}

/** Serves SDK v1 over HTTP. */
export function serveHttpV1(tasks: Tasks, { sessions }: { readonly sessions: boolean }): Promise<Listening> {
  const transports = new Map<unknown, StreamableHTTPServerTransport>();
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const known = transports.get(request.headers["mcp-session-id"]);
    if (known !== undefined) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      ...(sessions ? { sessionIdGenerator: randomUUID } : {}),
      onsessioninitialized: (id) => void transports.set(id, transport),
    });
    await newServerV1(tasks).connect(transport);
    return transport.handleRequest(request, response);
  };
  return listen((request, response) => void serve(request, response));
}

function listen(serve: RequestListener): Promise<Listening> {
  const http = createServer(serve);
  return new Promise((resolve) => {
    http.listen(0, "127.0.0.1", () => {
      const address = http.address();
      const port = typeof address === "object" ? address?.port : undefined;
      resolve({
        url: `http://127.0.0.1:${port}/mcp`,
        close: () => {
          http.closeAllConnections();
          http.close();
        },
      });
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [sdk, dir = "tasks"] = process.argv.slice(2);
  const tasks = createTasks({ store: await WalTaskStore.open({ dir }), pollIntervalMs: 20 });
  registerTools(tasks);
  if (sdk === "v1") await newServerV1(tasks).connect(new StdioServerTransport());
  else serveStdio(() => newServerV2(tasks));
}
