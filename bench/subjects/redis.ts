import { createHash, randomBytes } from "node:crypto";
import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";
import { progressPatches, sampleRecord } from "../sample-record.ts";
import type { UpdateSubject } from "../updates.ts";

/** Where the server is; `undefined` when none answers. */
export async function findRedis(): Promise<string | undefined> {
  const url = process.env["LONGJOBS_REDIS_URL"] ?? "redis://127.0.0.1:6379";
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  // The answer is whether it connects.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return url;
  } catch {
    // No server, no row: the caller says so.
    return undefined;
  } finally {
    client.disconnect();
  }
}

/** Runs with a prefix of its own, whose keys go afterwards. */
export async function underPrefix<Value>(
  url: string,
  run: (prefix: string) => Promise<Value>,
): Promise<Value> {
  const prefix = `bench-${randomBytes(6).toString("hex")}`;
  const client = new Redis(url);
  try {
    return await run(prefix);
  } finally {
    for await (const keys of client.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      for (const key of keys as string[]) await client.del(key);
    }
    client.disconnect();
  }
}

/** The store, on one connection. */
export function storeUpdates(url: string, keyPrefix: string): UpdateSubject {
  const client = new Redis(url);
  const store = new RedisTaskStore({ client, keyPrefix });
  return {
    name: "longjobs update",
    openTask: async () => {
      const record = sampleRecord(crypto.randomUUID());
      await store.create(record);
      let { version } = record;
      return async (done) => {
        version = await store.update(record.taskId, patchOf(done), version);
      };
    },
    close: async () => {
      await store.close();
      client.disconnect();
    },
  };
}

const rawSource = `
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], unpack(ARGV, 3))
return 1`;
const rawSha1 = createHash("sha1").update(rawSource).digest("hex");

/**
 * The bare client and a script that compares, writes the same fields and does nothing else: no limit, no
 * notification, no deadline.
 */
export async function rawUpdates(url: string, keyPrefix: string): Promise<UpdateSubject> {
  const client = new Redis(url);
  await client.script("LOAD", rawSource);
  return {
    name: "raw script",
    openTask: async () => {
      const record = sampleRecord(crypto.randomUUID());
      const key = `${keyPrefix}:raw:${record.taskId}`;
      await client.hset(key, ...textsOf(record));
      let { version } = record;
      return async (done) => {
        const next = version + 1;
        const written = await client.evalsha(rawSha1, 1, key, version, next, ...textsOf(patchOf(done)));
        if (written !== 1) throw new Error("conflict");
        version = next;
      };
    },
    close: async () => client.disconnect(),
  };
}

function textsOf(fields: object): string[] {
  return Object.entries(fields).flatMap(([name, value]) => [name, JSON.stringify(value)]);
}

function patchOf(done: number): (typeof progressPatches)[number] {
  return {
    statusMessage: `Section ${done} of 9`,
    lastUpdatedAt: new Date().toISOString(),
    progress: { done, total: 9 },
  };
}
