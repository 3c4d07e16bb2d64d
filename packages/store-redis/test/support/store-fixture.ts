import { randomUUID } from "node:crypto";
import { Redis, type RedisOptions } from "ioredis";
import { onTestFinished } from "vitest";
import { RedisTaskStore, type RedisTaskStoreOptions } from "../../src/index.ts";
import { startRedisServer, type RedisServer } from "./redis-server.ts";

/** A prefix that no other test uses; its keys are removed when the test has passed. */
export function freshPrefix(url: string): string {
  const keyPrefix = `test-${randomUUID()}`;
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") return;
    const client = new Redis(url);
    for (const key of await keysUnder(client, keyPrefix)) await client.del(key);
    client.disconnect();
  });
  return keyPrefix;
}

/** A server of the test's own, which ends with it. Call it before the other fixtures: they end in reverse order. */
export async function testServer(options: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedisServer(options);
  onTestFinished(() => server.stop());
  return server;
}

/** A client that is closed when the test ends. */
export function testClient(url: string, options: Omit<RedisOptions, "replyMapping"> = {}): Redis {
  const client = new Redis(url, options);
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  return client;
}

/** A store on keys of its own, closed when the test ends. */
export function testStore(
  url: string,
  options: Partial<RedisTaskStoreOptions> = {},
): { readonly store: RedisTaskStore; readonly keyPrefix: string; readonly client: Redis } {
  const keyPrefix = options.keyPrefix ?? freshPrefix(url);
  const client = (options.client as Redis | undefined) ?? testClient(url);
  const store = new RedisTaskStore({ ...options, client, keyPrefix });
  onTestFinished(() => store.close());
  return { store, keyPrefix, client };
}

/** Every key that begins with a prefix. */
export async function keysUnder(client: Redis, keyPrefix: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const keys of client.scanStream({ match: `${keyPrefix}*`, count: 1_000 })) {
    for (const key of keys as string[]) found.add(key);
  }
  return [...found].toSorted();
}
