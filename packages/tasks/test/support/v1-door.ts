import { randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server as HttpServer,
} from "node:http";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ElicitRequestSchema, type ElicitResult } from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, McpServer as V2McpServer } from "@modelcontextprotocol/server";
import { InMemoryTransport as V2InMemoryTransport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { afterEach } from "vitest";

import type { Tasks } from "../../src/index.ts";
import { assertWire2025, type Message2025 } from "./wire-2025.ts";

/** How a client of SDK v1 reaches a server: of SDK v1, or of SDK v2 by its leg for clients of its time. */
export type Road = "memory" | "http" | "stateless" | "json" | "v2 http" | "v2 stdio" | "v2 memory";

/** Where a question can reach the client, and its answer the server. */
export const openRoads: readonly Road[] = ["memory", "http", "v2 stdio", "v2 memory"];
/** Where it cannot. */
export const closedRoads: readonly Road[] = ["stateless", "json", "v2 http"];
export const allRoads: readonly Road[] = [...openRoads, ...closedRoads];

export interface DoorOptions {
  readonly road?: Road;
  /** A `Server` in place of an `McpServer`. */
  readonly lowLevel?: boolean;
  readonly extend?: (mcp: McpServer) => void;
  /** A server of the test's own, with nothing attached. */
  readonly server?: () => McpServer | Server;
  /** What the client answers to questions; without it the client declares no elicitation. */
  readonly answer?: (
    message: string,
    params: { readonly [name: string]: unknown },
  ) => ElicitResult | Promise<ElicitResult>;
  readonly capabilities?: object;
  /** The auth info of each HTTP request. */
  readonly auth?: (request: IncomingMessage) => object;
}

/** A client of SDK v1 that is connected to a server. */
export interface V1Door {
  readonly client: Client;
  /** Everything that the server has sent, checked. */
  readonly received: Message2025[];
  /** Breaks every connection without a word. */
  readonly breakConnections: () => void;
}

const info = { name: "test", version: "1.0.0" };
let closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  const all = closers;
  closers = [];
  for (const close of all) await close();
});

/** Calls after the test. */
export function closeLater(close: () => Promise<void> | void): void {
  closers.push(close);
}

export function newV1Server(
  tasks: Tasks,
  { lowLevel = false, extend, server }: DoorOptions = {},
): McpServer | Server {
  if (server !== undefined) return server();
  if (lowLevel) return tasks.attach(new Server(info));
  const mcp = new McpServer(info);
  extend?.(mcp);
  return tasks.attach(mcp);
}

/** Connects a new client to a new server. */
export async function openV1Door(tasks: Tasks, options: DoorOptions = {}): Promise<V1Door> {
  const { road = "memory" } = options;
  if (road === "v2 http") {
    const handler = createMcpHandler(() => newV2Server(tasks));
    closeLater(() => handler.close());
    const serve = toNodeHandler(handler);
    const { url, http } = await listen((request, respond) => void serve(request, respond));
    return connectV1Client(new StreamableHTTPClientTransport(url), options, () => http.closeAllConnections());
  }
  if (road === "v2 stdio" || road === "v2 memory") {
    const [near, far] = V2InMemoryTransport.createLinkedPair();
    const mcp = newV2Server(tasks);
    if (road === "v2 memory") await mcp.connect(far);
    const serving = road === "v2 memory" ? mcp : serveStdio(() => mcp, { transport: far });
    closeLater(() => serving.close());
    return connectV1Client(near, options);
  }
  if (road === "memory") {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const server = newV1Server(tasks, options);
    await server.connect(far);
    closeLater(() => server.close());
    return connectV1Client(near, options);
  }
  const { url, http } = await serveV1Http(tasks, options);
  return connectV1Client(new StreamableHTTPClientTransport(url), options, () => http.closeAllConnections());
}

/** Connects a client, every message to which is checked. */
export async function connectV1Client(
  transport: Transport,
  { answer, capabilities = {} }: DoorOptions = {},
  breakConnections: () => void = () => undefined,
): Promise<V1Door> {
  const elicitation = answer === undefined ? {} : { elicitation: { form: {}, url: {} } };
  const client = new Client(info, { capabilities: { ...elicitation, ...capabilities } });
  if (answer !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message, params));
  const received: Message2025[] = [];
  const methods = new Map<unknown, string>();
  watchMessages(transport, methods, received);
  await client.connect(transport);
  closeLater(() => client.close());
  return { client, received, breakConnections };
}

/** The client sets `onmessage` when it connects: what comes is looked at before it sees it. */
function watchMessages(transport: Transport, methods: Map<unknown, string>, received: Message2025[]): void {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if ("method" in message && "id" in message) methods.set(message.id, message.method);
    if (JSON.stringify(message).includes("longjobs/idempotencyKey")) keyed.add((message as Message2025).id);
    return send(message, options);
  };
  const keyed = new Set<unknown>();
  let onmessage: Transport["onmessage"];
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: () => onmessage,
    set: (listener: NonNullable<Transport["onmessage"]>) => {
      onmessage = (message, extra) => {
        const seen = message as Message2025;
        received.push(seen);
        try {
          assertWire2025(methods.get(seen.id), seen, { repeatable: keyed.has(seen.id) });
        } catch (error) {
          // The client's own answer to the call, so that the test fails where it waits.
          const fault = { code: -1, message: `This may not be sent: ${String(error)}` };
          return listener({ jsonrpc: "2.0", id: seen.id ?? 0, error: fault }, extra);
        }
        return listener(message, extra);
      };
    },
  });
}

function newV2Server(tasks: Tasks): V2McpServer {
  return tasks.attach(new V2McpServer(info));
}

async function listen(serve: RequestListener): Promise<{ readonly url: URL; readonly http: HttpServer }> {
  const http = createServer(serve);
  await new Promise<void>((resolve) => {
    http.listen(0, "127.0.0.1", resolve);
  });
  closeLater(() => {
    http.closeAllConnections();
    http.close();
  });
  const address = http.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return { url: new URL(`http://127.0.0.1:${address.port}/mcp`), http };
}

/** A real HTTP server with a server of SDK v1 per session, or per request. */
export async function serveV1Http(
  tasks: Tasks,
  options: DoorOptions,
): Promise<{ readonly url: URL; readonly http: HttpServer }> {
  const { road = "http", auth } = options;
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const serve = async (
    request: IncomingMessage,
    respond: Parameters<StreamableHTTPServerTransport["handleRequest"]>[1],
  ): Promise<void> => {
    if (auth !== undefined) Object.assign(request, { auth: auth(request) });
    const known = sessions.get(String(request.headers["mcp-session-id"]));
    if (known !== undefined) return known.handleRequest(request, respond);
    const transport = new StreamableHTTPServerTransport({
      ...(road === "stateless" ? {} : { sessionIdGenerator: randomUUID }),
      enableJsonResponse: road === "json",
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const server = newV1Server(tasks, options);
    await server.connect(transport);
    closeLater(() => server.close());
    if (road === "stateless") respond.on("close", () => void server.close());
    return transport.handleRequest(request, respond);
  };
  return listen((request, respond) => void serve(request, respond));
}
