import { McpServer } from "@modelcontextprotocol/server";

import type { Tasks } from "../../src/index.ts";
import { HttpDoor, type HttpCallOptions } from "./http-door.ts";
import { StdioDoor } from "./stdio-door.ts";
import { connectV1InMemory, serveV1Sessions } from "./v1-session.ts";
import type { WireMessage, WireResult } from "./wire.ts";

/** What one call says besides its arguments. */
export interface EntryCallOptions extends Pick<HttpCallOptions, "auth" | "headers" | "signal"> {
  readonly progressToken?: string | number;
  /** Further entries of `_meta`. */
  readonly meta?: { readonly [key: string]: unknown };
}

/** One way for a client without tasks to reach a server. */
export interface Entry {
  send(method: string, params?: object, options?: EntryCallOptions): Promise<WireMessage>;
  /** Calls a tool; fails unless there is a result. */
  call(name: string, args?: object, options?: EntryCallOptions): Promise<WireResult>;
  /** Progress notifications that came so far. */
  readonly progress: readonly WireMessage[];
}

/** Opens an entry. */
export type OpenEntry = (tasks: Tasks) => Promise<Entry>;

function entry(send: Entry["send"], progress: readonly WireMessage[]): Entry {
  return {
    send,
    progress,
    call: async (name, args = {}, options = {}) => {
      const message = await send("tools/call", { name, arguments: args }, options);
      if (message.result === undefined) throw new Error(`Not a result: ${JSON.stringify(message)}`);
      return message.result;
    },
  };
}

function metaOf({ progressToken, meta }: EntryCallOptions): { readonly [key: string]: unknown } {
  return { ...(progressToken === undefined ? {} : { progressToken }), ...meta };
}

function withMeta(params: object, options: EntryCallOptions): object {
  const meta = metaOf(options);
  return Object.keys(meta).length === 0 ? params : { ...params, _meta: meta };
}

async function overHttp(tasks: Tasks, legacy: boolean): Promise<Entry> {
  const door = new HttpDoor(tasks);
  const progress: WireMessage[] = [];
  return entry(async (method, params = {}, options = {}) => {
    const { progressToken: _token, ...more } = options;
    const reply = legacy
      ? await door.sendLegacy(method, withMeta(params, options), more)
      : await door.send(method, params, { ...more, declare: false, meta: metaOf(options) });
    progress.push(...reply.notifications);
    return reply.message;
  }, progress);
}

async function overStdio(door: StdioDoor, legacy: boolean): Promise<Entry> {
  if (legacy) await door.initialize();
  return entry(
    (method, params = {}, options = {}) =>
      legacy
        ? door.send(method, withMeta(params, options))
        : door.send(method, params, { declare: false, meta: metaOf(options) }),
    door.notifications,
  );
}

async function overV1Http(tasks: Tasks): Promise<Entry> {
  const session = await (await serveV1Sessions(tasks))();
  const progress: WireMessage[] = [];
  return entry(async (method, params = {}, options = {}) => {
    const reply = await session.send(method, withMeta(params, options), options);
    progress.push(...reply.notifications);
    return reply.message;
  }, progress);
}

function byHand(tasks: Tasks): Promise<StdioDoor> {
  const mcp = new McpServer({ name: "test", version: "1.0.0" });
  tasks.attach(mcp);
  return StdioDoor.connect(mcp);
}

/** Every way for a client without tasks: what holds for one must hold for each. */
export const entries: readonly (readonly [name: string, open: OpenEntry])[] = [
  ["2026 over HTTP, without the extension", (tasks) => overHttp(tasks, false)],
  ["2026 over stdio, without the extension", async (tasks) => overStdio(await StdioDoor.serve(tasks), false)],
  ["2025 over HTTP, without sessions", (tasks) => overHttp(tasks, true)],
  ["2025 over stdio", async (tasks) => overStdio(await StdioDoor.serve(tasks), true)],
  ["2025 in memory", async (tasks) => overStdio(await byHand(tasks), true)],
  ["2025 over HTTP with sessions, SDK v1", overV1Http],
  ["2025 in memory, SDK v1", async (tasks) => overStdio(await connectV1InMemory(tasks), true)],
];

/** One of them, where they cannot differ. */
export function openEntry(tasks: Tasks): Promise<Entry> {
  return overHttp(tasks, false);
}

/** The id in the answer of a tool that goes on as a task. */
export function idOf(result: WireResult): string {
  const taskId = result.structuredContent?.["taskId"];
  if (typeof taskId !== "string") throw new Error(`Not a task: ${JSON.stringify(result)}`);
  return taskId;
}

/** Starts a task that goes on after its call, and gives its id. */
export async function start(client: Entry, name: string, args: object = {}, options?: EntryCallOptions) {
  return idOf(await client.call(name, args, options));
}

/** Waits, call by call, until a task has a status. */
export async function until(client: Entry, taskId: string, status: string): Promise<WireResult> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const result = await client.call("durable_task_get", { taskId, waitSeconds: 1 });
    if (result.structuredContent?.["status"] === status) return result;
    if (Date.now() > deadline) throw new Error(`Not ${status}: ${JSON.stringify(result)}`);
  }
}

/** All the text of a result. */
export function words(result: WireResult): string {
  return (result.content ?? []).map(({ text }) => text ?? "").join("\n");
}
