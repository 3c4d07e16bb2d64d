import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { connect } from "node:net";
import type { TaskStore } from "@longjobs/core";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { createTasks, type Tasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { Redis } from "ioredis";
import { Client, Pool } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

interface Place {
  readonly name: string;
  readonly url: string;
  /** A store of its own on what `key` names, as another process has it. */
  readonly open: (url: string, key: string) => Promise<TaskStore>;
  /** Removes everything that `key` names. */
  readonly clear: (url: string, key: string) => Promise<void>;
}

const postgres: Omit<Place, "name" | "open"> = {
  url: process.env["LONGJOBS_POSTGRES_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres",
  clear: async (url, schema) => {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
    await client.end();
  },
};

async function openPostgres(url: string, schema: string, listens: boolean): Promise<TaskStore> {
  const pool = new Pool({ connectionString: url, max: 4 });
  const listen = { listen: () => new Client({ connectionString: url }) };
  const store = new PostgresTaskStore({ pool, schema, ...(listens ? listen : {}) });
  closers.push(
    () => pool.end(),
    () => store.close(),
  );
  await store.migrate();
  return store;
}

const places: readonly Place[] = [
  { ...postgres, name: "Postgres that notifies", open: (url, key) => openPostgres(url, key, true) },
  { ...postgres, name: "Postgres that is looked at", open: (url, key) => openPostgres(url, key, false) },
  {
    name: "Redis",
    url: process.env["LONGJOBS_REDIS_URL"] ?? "redis://127.0.0.1:6379",
    open: async (url, keyPrefix) => {
      const client = new Redis(url);
      const store = new RedisTaskStore({ client, keyPrefix });
      closers.push(
        () => client.quit(),
        () => store.close(),
      );
      return store;
    },
    clear: async (url, keyPrefix) => {
      const client = new Redis(url);
      const keys = await client.keys(`${keyPrefix}*`);
      if (keys.length > 0) await client.del(...keys);
      await client.quit();
    },
  },
];

async function isThere({ name, url }: Place): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const answers = await new Promise<boolean>((resolve) => {
    const socket = connect(Number(port), hostname, () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.unref();
  });
  if (!answers) console.log(`push on ${name}: skipped. No server at ${url}.`);
  return answers;
}

const mustBeThere = process.env["LONGJOBS_REQUIRE_SERVICES"] === "1";
const found = await Promise.all(
  places.map(async (place) => [place.name, place, mustBeThere || (await isThere(place))] as const),
);

let closers: (() => Promise<unknown>)[] = [];
let key = "";

beforeEach(() => {
  key = `test_${randomBytes(6).toString("hex")}`;
});

afterEach(async () => {
  for (const close of closers.toReversed()) await close();
  closers = [];
});

/** An instance of the server behind a socket of its own. */
async function openInstance({ open, url }: Place): Promise<{ readonly tasks: Tasks; readonly url: string }> {
  const tasks = createTasks({ store: await open(url, key), scope: null });
  const factory = () => tasks.attach(new McpServer({ name: "test", version: "1.0.0" }));
  const serve = toNodeHandler(tasks.wrapHandler(createMcpHandler(factory)));
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  closers.push(
    async () => {
      server.closeAllConnections();
      server.close();
    },
    () => tasks.close({ shutdownGraceMs: 0 }),
  );
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return { tasks, url: `http://127.0.0.1:${address.port}/mcp` };
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly [key: string]: unknown };
  readonly result?: { readonly [key: string]: unknown };
}

function post(url: string, method: string, params: object): Promise<Response> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const { taskId } = params as { readonly taskId?: string };
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(taskId === undefined ? {} : { "mcp-name": taskId }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
  });
}

/** The messages of a stream, until it ends. */
async function* messagesOf(response: Response): AsyncGenerator<Message> {
  let held = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    held += chunk;
    const events = held.split("\n\n");
    held = events.pop() ?? "";
    for (const event of events) {
      const line = event.split("\n").find((one) => one.startsWith("data:"));
      if (line !== undefined) yield JSON.parse(line.slice(5)) as Message;
    }
  }
}

describe.each(found)("push on %s", (_name, place, isFound) => {
  it.runIf(isFound)("who listens to one instance is told what the other one does", async () => {
    closers.push(() => place.clear(place.url, key));
    const [worker, here] = [await openInstance(place), await openInstance(place)];
    const ids: string[] = [];
    for (let made = 0; made < 3; made += 1) ids.push((await worker.tasks.lifecycle.createTask()).taskId);
    const response = await post(here.url, "subscriptions/listen", {
      notifications: { taskIds: [...ids, "nobody"] },
    });
    const told: Message[] = [];
    const steps = [
      () => worker.tasks.lifecycle.handle(ids[0] ?? "").progress("half"),
      () => worker.tasks.lifecycle.handle(ids[0] ?? "").complete({ content: [] }),
      () => worker.tasks.lifecycle.cancelTask(ids[1] ?? "", { atOnce: true }),
      () => worker.tasks.lifecycle.handle(ids[2] ?? "").complete({ content: [] }),
    ];
    for await (const message of messagesOf(response)) {
      told.push(message);
      if (told.length >= 4) await steps.shift()?.();
    }
    expect(told[0]?.params).toMatchObject({ notifications: { taskIds: ids } });
    expect(told.at(-1)).toMatchObject({ id: 1, result: { resultType: "complete" } });
    expect(told.some(({ params }) => params?.["statusMessage"] === "half")).toBe(true);
    for (const taskId of ids) {
      const last = told.findLast(({ params }) => params?.["taskId"] === taskId)?.params;
      const { _meta, ...task } = last ?? {};
      const { result } = (await (await post(here.url, "tasks/get", { taskId })).json()) as Message;
      const { resultType: _type, _meta: _own, ...asked } = result ?? {};
      expect(task).toEqual(asked);
    }
    await expect.poll(() => here.tasks.stats().watchedTasks).toBe(0);
  });
});
