/* The fleet on Redis: BullMQ delivers, the store is `@longjobs/store-redis`. Keys of its own, deleted at the end. */
import { tellFleetStory } from "@longjobs/example-worker-fleet/story";
import { Redis } from "ioredis";

const url = process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379";
const keyPrefix = `fleet-${process.pid}-${Date.now()}`;

await tellFleetStory({
  server: new URL("server.ts", import.meta.url),
  worker: new URL("worker.ts", import.meta.url),
  env: { REDIS_URL: url, KEY_PREFIX: keyPrefix },
});
const client = new Redis(url);
const keys = await client.keys(`*${keyPrefix}*`);
if (keys.length > 0) await client.del(...keys);
client.disconnect();
