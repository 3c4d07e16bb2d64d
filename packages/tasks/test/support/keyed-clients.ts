import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { z } from "zod";

import type { Tasks } from "../../src/index.ts";
import { entries } from "./entries.ts";
import { HttpDoor } from "./http-door.ts";
import { StdioDoor } from "./stdio-door.ts";
import { allRoads, openV1Door, type Road } from "./v1-door.ts";
import type { WireError, WireMessage, WireResult } from "./wire.ts";

/** Where a key goes that a client's software sends. */
export const keyMeta = "longjobs/idempotencyKey";

/** What a call was answered with. */
export type Answer =
  | { readonly result: WireResult; readonly error?: undefined }
  | { readonly error: WireError; readonly result?: undefined };

/** One way to call a tool with a key in the metadata of the request. */
export interface KeyedClient {
  call(name: string, args: object, key?: unknown): Promise<Answer>;
}

export type OpenKeyedClient = (tasks: Tasks) => Promise<KeyedClient>;

function metaOf(key: unknown): { readonly [name: string]: unknown } {
  return key === undefined ? {} : { [keyMeta]: key };
}

function toAnswer({ error, result }: Pick<WireMessage, "error" | "result">): Answer {
  return error === undefined ? { result: result ?? {} } : { error };
}

async function overV1(tasks: Tasks, road: Road, task?: object): Promise<KeyedClient> {
  const { client } = await openV1Door(tasks, { road });
  return {
    call: (name, args, key) =>
      requestOf(client, { name, arguments: args, _meta: metaOf(key), ...(task && { task }) }),
  };
}

/** The client's own method would have its say about results; here only what came counts. */
async function requestOf(client: Client, params: object): Promise<Answer> {
  try {
    return {
      result: await client.request({ method: "tools/call", params: { ...params } }, z.looseObject({})),
    };
  } catch (error) {
    const { code, data, message } = error as WireError;
    return { error: { code, message, ...(data === undefined ? {} : { data }) } };
  }
}

/** Clients with tasks: what they get is a handle, or the result. */
const nativeClients: readonly (readonly [string, OpenKeyedClient])[] = [
  [
    "2026 over HTTP, with the extension",
    async (tasks) => {
      const door = new HttpDoor(tasks);
      return {
        call: async (name, args, key) =>
          toAnswer((await door.send("tools/call", { name, arguments: args }, { meta: metaOf(key) })).message),
      };
    },
  ],
  [
    "2026 over stdio, with the extension",
    async (tasks) => {
      const door = await StdioDoor.serve(tasks);
      return {
        call: async (name, args, key) =>
          toAnswer(await door.send("tools/call", { name, arguments: args }, { meta: metaOf(key) })),
      };
    },
  ],
];

const withoutTasks = entries.map(([name, open]): readonly [string, OpenKeyedClient] => [
  name,
  async (tasks) => {
    const client = await open(tasks);
    return {
      call: async (tool, args, key) =>
        toAnswer(await client.send("tools/call", { name: tool, arguments: args }, { meta: metaOf(key) })),
    };
  },
]);

const v1Roads: readonly Road[] = ["memory", "http", "stateless", "json"];
const overV1Servers = v1Roads.map((road): readonly [string, OpenKeyedClient] => [
  `SDK v1 over ${road}`,
  (tasks) => overV1(tasks, road),
]);

/** Every client that may get a result in answer to its call. */
export const callingClients = [...nativeClients, ...withoutTasks, ...overV1Servers];

/** Clients of 2025-11-25 that ask for a task with each call. */
export const taskClients2025 = allRoads.map((road): readonly [string, OpenKeyedClient] => [
  `2025 tasks over ${road}`,
  (tasks) => overV1(tasks, road, {}),
]);

/** The id of the task in an answer, in whatever form this client gets it. */
export function taskIdOf({ result, error }: Answer): string {
  const { task } = (result ?? {}) as { readonly task?: { readonly taskId?: string } };
  const taskId = result?.taskId ?? result?.structuredContent?.["taskId"] ?? task?.taskId;
  if (typeof taskId !== "string") throw new Error(`No task: ${JSON.stringify(result ?? error)}`);
  return taskId;
}

/** The code of longjobs in a refusal, as a JSON-RPC error or as a tool error. */
export function refusalOf({ result, error }: Answer): unknown {
  const data: unknown = error?.data ?? (result?.isError === true ? result.structuredContent : undefined);
  return (data as { readonly code?: unknown } | undefined)?.code;
}
