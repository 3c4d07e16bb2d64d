import { randomUUID } from "node:crypto";

import { Redis } from "ioredis";
import { afterAll } from "vitest";

import { findRedis, withRedis } from "../../packages/store-redis/test/support/find-redis.ts";
import { keysUnder } from "../../packages/store-redis/test/support/store-fixture.ts";
import { anyProcessScenarios } from "./any-process.ts";
import { fencingScenarios } from "./fencing.ts";
import type { FreshPlace } from "./scene.ts";
import { recoveryScenarios } from "./scenarios.ts";

const found = await findRedis();
afterAll(() => found?.stop());

withRedis("fleets on Redis", found, (url) => {
  recoveryScenarios("store-redis", () => freshPlace(url, true));
  fencingScenarios("store-redis", () => freshPlace(url, true));
  anyProcessScenarios("store-redis", () => freshPlace(url, true));
  anyProcessScenarios("store-redis without notifications", () => freshPlace(url, false));
});

async function freshPlace(url: string, notifies: boolean): Promise<FreshPlace> {
  const keyPrefix = `recovery-${randomUUID()}`;
  return { place: { kind: "redis", url, keyPrefix, notifies }, remove: () => removeKeys(url, keyPrefix) };
}

async function removeKeys(url: string, keyPrefix: string): Promise<void> {
  const client = new Redis(url);
  const keys = await keysUnder(client, keyPrefix);
  if (keys.length > 0) await client.del(...keys);
  client.disconnect();
}
