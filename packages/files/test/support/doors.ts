import { randomUUID } from "node:crypto";
import { createServer, type RequestListener } from "node:http";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as V1McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  createMcpHandler,
  InMemoryTransport as V2InMemoryTransport,
  McpServer as V2McpServer,
} from "@modelcontextprotocol/server";
import { afterEach } from "vitest";

import type { Files } from "../../src/index.ts";

/** How tools are reached: each SDK, each era, in memory and over HTTP. */
export type Road = "v1 memory" | "v1 http" | "v2 memory" | "v2 http";

export const roads: readonly Road[] = ["v1 memory", "v1 http", "v2 memory", "v2 http"];
/** Where a call says who it is from. */
export const httpRoads: readonly Road[] = ["v1 http", "v2 http"];

/** Whose call it is. */
export interface Caller {
  readonly clientId: string;
  readonly extra?: { readonly [name: string]: unknown };
}

/** A refusal, as a model gets it. */
export interface Envelope {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly param?: string;
  readonly recoveryHint?: string;
  readonly partial?: { readonly [name: string]: unknown };
}

/** What a tool answered. */
export interface Answer {
  readonly isError: boolean;
  readonly text: string;
  readonly structured: { readonly [name: string]: unknown };
}

/** A client that is connected to a server with the tools. */
export interface Door {
  call(name: string, args: object, caller?: Caller): Promise<Answer>;
  listTools(): Promise<readonly { readonly name: string; readonly [member: string]: unknown }[]>;
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

export async function openDoor(files: Files, road: Road = "v2 http"): Promise<Door> {
  switch (road) {
    case "v1 memory": {
      const [near, far] = InMemoryTransport.createLinkedPair();
      const server = files.attach(new V1McpServer(info));
      await server.connect(far);
      closeLater(() => server.close());
      return connect(near);
    }
    case "v2 memory": {
      const [near, far] = V2InMemoryTransport.createLinkedPair();
      const server = files.attach(new V2McpServer(info));
      await server.connect(far);
      closeLater(() => server.close());
      return connect(near);
    }
    case "v1 http":
      return openV1Http(files);
    case "v2 http":
      return openV2Http(files);
  }
}

/** The answer to a call; fails for a refusal. */
export async function answerOf(answer: Promise<Answer>): Promise<Answer["structured"]> {
  const { isError, structured, text } = await answer;
  if (isError) throw new Error(`Refused: ${text}`);
  return structured;
}

/** The envelope of a refusal; fails for an answer. */
export async function refusalOf(answer: Promise<Answer>): Promise<Envelope> {
  const { isError, structured, text } = await answer;
  if (!isError || structured["error"] === undefined) throw new Error(`Not refused: ${text}`);
  return structured["error"] as unknown as Envelope;
}

/** Listens on a port of its own until the test is over. */
export async function listen(serve: RequestListener): Promise<URL> {
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
  return new URL(`http://127.0.0.1:${address.port}/`);
}

async function connect(transport: Parameters<Client["connect"]>[0]): Promise<Door> {
  const client = new Client(info);
  await client.connect(transport);
  closeLater(() => client.close());
  return {
    call: async (name, args) => toAnswer(await client.callTool({ name, arguments: { ...args } })),
    listTools: async () => (await client.listTools()).tools,
  };
}

/** A real server with a session per client; the caller's auth info is what its verifier would have made. */
async function openV1Http(files: Files): Promise<Door> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const url = await listen((request, response) => {
    const given = request.headers["x-caller"];
    const auth =
      given === undefined ? undefined : { token: "secret", scopes: [], ...JSON.parse(String(given)) };
    Object.assign(request, { auth });
    const known = sessions.get(String(request.headers["mcp-session-id"]));
    if (known !== undefined) return void known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const server = files.attach(new V1McpServer(info));
    closeLater(() => server.close());
    void server.connect(transport as never).then(() => transport.handleRequest(request as never, response));
  });
  let caller: Caller | undefined;
  const withCaller: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    if (caller !== undefined) headers.set("x-caller", JSON.stringify(caller));
    return fetch(input, { ...init, headers });
  };
  const transport = new StreamableHTTPClientTransport(new URL("mcp", url), { fetch: withCaller });
  const door = await connect(transport);
  return {
    listTools: () => door.listTools(),
    call: (name, args, by) => {
      caller = by;
      return door.call(name, args);
    },
  };
}

/** A handler of SDK v2, which makes a server for each request; frames of revision 2026-07-28. */
async function openV2Http(files: Files): Promise<Door> {
  const handler = createMcpHandler(() => files.attach(new V2McpServer(info)));
  closeLater(() => handler.close());
  let id = 0;
  const send = async (
    method: string,
    params: object,
    name: string | undefined,
    caller?: Caller,
  ): Promise<unknown> => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": info,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const request = new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...(name === undefined ? {} : { "mcp-name": name }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: (id += 1), method, params: { ...params, _meta } }),
    });
    const authInfo = caller === undefined ? {} : { authInfo: { token: "secret", scopes: [], ...caller } };
    const body = await (await handler.fetch(request, authInfo)).text();
    const line = body.startsWith("{")
      ? body
      : (body.split("\n").find((each) => each.startsWith("data:")) ?? "").slice(5);
    const message = JSON.parse(line) as { readonly result?: unknown; readonly error?: unknown };
    if (message.result === undefined) throw new Error(`Not a result: ${JSON.stringify(message.error)}`);
    return message.result;
  };
  return {
    call: async (name, args, caller) =>
      toAnswer(await send("tools/call", { name, arguments: args }, name, caller)),
    listTools: async () => ((await send("tools/list", {}, undefined)) as { tools: never }).tools,
  };
}

function toAnswer(given: unknown): Answer {
  const { content, isError, structuredContent } = given as {
    readonly content: readonly { readonly text: string }[];
    readonly isError?: boolean;
    readonly structuredContent?: Answer["structured"];
  };
  return { isError: isError === true, text: content[0]?.text ?? "", structured: structuredContent ?? {} };
}
