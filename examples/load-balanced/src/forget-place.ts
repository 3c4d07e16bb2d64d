import { Redis } from "ioredis";
import { Client } from "pg";
import type { StorePlace } from "./open-store.ts";

/** Deletes everything that a demo has kept. */
export async function forgetPlace({ kind, url, name }: StorePlace): Promise<void> {
  if (kind === "redis") {
    const client = new Redis(url);
    for await (const keys of client.scanStream({ match: `${name}:*`, count: 1_000 })) {
      for (const key of keys as string[]) await client.del(key);
    }
    client.disconnect();
  } else {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`DROP SCHEMA "${name}" CASCADE`);
    await client.end();
  }
}
