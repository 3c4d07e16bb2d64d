import { runTaskStoreConformance } from "@longjobs/conformance";
import { afterAll, describe, it } from "vitest";
import { findRedis, withOwnServers, withRedis } from "./support/find-redis.ts";
import { hasRedisServer } from "./support/redis-server.ts";
import { startRedisCluster } from "./support/redis-cluster.ts";
import { makeSubject } from "./support/subject.ts";

const runner = { describe, it, skip: it.skip };
const found = await findRedis();
const cluster = hasRedisServer() ? await startRedisCluster() : undefined;
afterAll(async () => {
  await found?.stop();
  await cluster?.stop();
});

withRedis("one server", found, (url) => {
  const ports = [Number(new URL(url).port || 6379)];
  runTaskStoreConformance("RedisTaskStore", () => makeSubject(ports), { runner, profile: "shared" });
});

withOwnServers("a Cluster of three nodes", () => {
  const ports = cluster?.ports ?? [];
  runTaskStoreConformance("RedisTaskStore", () => makeSubject(ports), { runner, profile: "shared" });
});
