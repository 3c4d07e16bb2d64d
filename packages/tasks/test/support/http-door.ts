import * as currentSdk from "@modelcontextprotocol/server";
import type { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { afterEach } from "vitest";

import type { Tasks } from "../../src/index.ts";
import { EventSubscriber } from "./event-subscriber.ts";
import { frameText, legacyFrame, modernFrame, type CallOptions } from "./frames.ts";
import { assertLegacyWire, assertWire, type WireError, type WireMessage, type WireResult } from "./wire.ts";

type Handler = ReturnType<typeof createMcpHandler>;
type Auth = NonNullable<Parameters<Handler["fetch"]>[1]>["authInfo"];

/** What one call over HTTP says besides its params. */
export interface HttpCallOptions extends CallOptions {
  readonly auth?: {
    readonly clientId: string;
    readonly expiresAt?: number;
    readonly extra?: { readonly [key: string]: unknown };
  };
  readonly headers?: { readonly [name: string]: string };
  readonly signal?: AbortSignal;
}

/** An answer over HTTP, checked. */
export interface Reply {
  readonly httpStatus: number;
  /** Notifications, in order. */
  readonly notifications: readonly WireMessage[];
  readonly message: WireMessage;
}

let open: Handler[] = [];

afterEach(async () => {
  const all = open;
  open = [];
  for (const handler of all) await handler.close();
});

/** What a server has besides the tasks that are attached to it. */
export interface DoorOptions {
  readonly serverOptions?: ConstructorParameters<typeof McpServer>[1];
  /** Called with each instance, before tasks are attached. */
  readonly extend?: (mcp: McpServer) => void;
  /** Tells of changes too. @default false: everything else must not need it */
  readonly push?: boolean;
  /** Options of the SDK's own listen route. */
  readonly handlerOptions?: Parameters<typeof createMcpHandler>[1];
  /** Another version of the SDK. */
  readonly sdk?: Pick<typeof currentSdk, "createMcpHandler" | "McpServer">;
}

/** An MCP server over HTTP without a socket: a fresh instance for each request, as `createMcpHandler` makes them. */
export class HttpDoor {
  readonly handler: Handler;

  constructor(
    tasks: Tasks | readonly Tasks[],
    { serverOptions, extend, handlerOptions, push = false, sdk = currentSdk }: DoorOptions = {},
  ) {
    const handler = sdk.createMcpHandler(() => {
      const mcp = new sdk.McpServer({ name: "test", version: "1.0.0" }, serverOptions);
      extend?.(mcp);
      for (const one of [tasks].flat()) one.attach(mcp);
      return mcp;
    }, handlerOptions);
    const [first] = [tasks].flat();
    this.handler = push && first !== undefined ? first.wrapHandler(handler) : handler;
    open.push(this.handler);
  }

  /** Sends a request of revision 2026-07-28. */
  async send(method: string, params: object = {}, options: HttpCallOptions = {}): Promise<Reply> {
    const frame = modernFrame(method, params, options);
    const request = toRequest(frame.method, params, frameText(frame), options);
    const reply = await read(await this.handler.fetch(request, toFetchOptions(options)));
    for (const message of [...reply.notifications, reply.message]) assertWire(method, message);
    return reply;
  }

  /** Subscribes; the stream is read by the test. */
  async listen(notifications: unknown, options: HttpCallOptions = {}): Promise<EventSubscriber> {
    const frame = modernFrame("subscriptions/listen", { notifications }, options);
    const request = toRequest(frame.method, {}, frameText(frame), options);
    return new EventSubscriber(frame.id, await this.handler.fetch(request, toFetchOptions(options)));
  }

  /** Sends a request of revision 2025-11-25. */
  async sendLegacy(method: string, params: object = {}, options: HttpCallOptions = {}): Promise<Reply> {
    const request = new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: { ...jsonHeaders, "mcp-protocol-version": "2025-11-25" },
      body: frameText(legacyFrame(method, params)),
    });
    const reply = await read(await this.handler.fetch(request, toFetchOptions(options)));
    assertLegacyWire(method, reply.message);
    return reply;
  }

  /** Sends a body as it is, with the headers that would fit `method`. */
  async sendRaw(method: string, params: object, body: string): Promise<Reply> {
    const reply = await read(await this.handler.fetch(toRequest(method, params, body, {})));
    assertWire(method, reply.message);
    return reply;
  }

  /** Calls a tool; fails unless there is a result. */
  async callTool(name: string, args: object = {}, options: HttpCallOptions = {}): Promise<WireResult> {
    return resultOf(await this.send("tools/call", { name, arguments: args }, options));
  }

  /** Calls a tool; fails unless the answer is a handle. */
  async startTask(name: string, args: object = {}, options: HttpCallOptions = {}): Promise<string> {
    const result = await this.callTool(name, args, options);
    if (result.resultType !== "task" || result.taskId === undefined) {
      throw new Error(`Not a task handle: ${JSON.stringify(result)}`);
    }
    return result.taskId;
  }

  async get(taskId: string, options?: HttpCallOptions): Promise<WireResult> {
    return resultOf(await this.send("tasks/get", { taskId }, options));
  }

  async update(taskId: string, inputResponses: object, options?: HttpCallOptions): Promise<void> {
    resultOf(await this.send("tasks/update", { taskId, inputResponses }, options));
  }

  async cancel(taskId: string, options?: HttpCallOptions): Promise<void> {
    resultOf(await this.send("tasks/cancel", { taskId }, options));
  }

  /** Polls until the task has a status, with a deadline. */
  async until(taskId: string, status: string, options?: HttpCallOptions): Promise<WireResult> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      const task = await this.get(taskId, options);
      if (task.status === status) return task;
      if (Date.now() > deadline)
        throw new Error(`Still ${task.status}, not ${status}: ${JSON.stringify(task)}`);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
}

/** The result of a reply; fails for an error. */
export function resultOf({ message }: Reply): WireResult {
  if (message.result === undefined) throw new Error(`Not a result: ${JSON.stringify(message)}`);
  return message.result;
}

/** The error of a reply; fails for a result. */
export function errorOf({ message }: Reply): WireError {
  if (message.error === undefined) throw new Error(`Not an error: ${JSON.stringify(message)}`);
  return message.error;
}

const jsonHeaders = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** The headers that revision 2026-07-28 wants beside a body. */
export function routingHeaders(method: string, params: object): Record<string, string> {
  const { name, taskId } = params as { name?: unknown; taskId?: unknown };
  const routed = name ?? taskId;
  return {
    ...jsonHeaders,
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(typeof routed === "string" ? { "mcp-name": headerText(routed) } : {}),
  };
}

/** Text that a header cannot hold as it is goes as base64. */
function headerText(text: string): string {
  if (/^[!-~]+$/.test(text) && !text.startsWith("=?")) return text;
  return `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

function toRequest(method: string, params: object, body: string, options: HttpCallOptions): Request {
  return new Request("http://127.0.0.1/mcp", {
    method: "POST",
    headers: { ...routingHeaders(method, params), ...options.headers },
    body,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

function toFetchOptions({ auth }: HttpCallOptions): { authInfo?: NonNullable<Auth> } {
  return auth === undefined ? {} : { authInfo: { token: "secret-token", scopes: [], ...auth } };
}

async function read(response: Response): Promise<Reply> {
  const text = await response.text();
  const messages = parseFrames(text, response.headers.get("content-type") ?? "");
  const answers = messages.filter(({ method }) => method === undefined);
  const [message] = answers;
  // Exactly one answer, and nothing after it.
  if (message === undefined || answers.length !== 1 || messages.at(-1) !== message) {
    throw new Error(`HTTP ${response.status} with ${answers.length} answers: ${text.slice(0, 500)}`);
  }
  return { httpStatus: response.status, message, notifications: messages.filter(({ method }) => method) };
}

/** The messages of a JSON or an event-stream body, in order. */
export function parseFrames(text: string, contentType: string): WireMessage[] {
  if (!contentType.startsWith("text/event-stream")) return [JSON.parse(text) as WireMessage];
  const lines = text.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => JSON.parse(line.slice(5)) as WireMessage);
}
