import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";
import { Pool } from "pg";
import { expect, test } from "vitest";

import { onDisk, onPostgres, onRedis, tasksOn } from "./snippets/choose-store.ts";

test("the page on choosing a store shows stores that tasks can be made on", async () => {
  const dir = await mkdtemp(join(tmpdir(), "longjobs-choose-"));
  const pool = new Pool();
  const client = new Redis({ lazyConnect: true });
  const stores = [await onDisk(dir), onPostgres(pool), onRedis(client)];
  for (const store of stores) {
    const tasks = tasksOn(store);
    expect(tasks.stats().attempts).toBe(0);
    await tasks.close();
    await store.close();
  }
  await pool.end();
  client.disconnect();
  await rm(dir, { recursive: true });
});
