import { runTaskStoreConformance } from "@longjobs/conformance";
import { afterAll, beforeAll, describe, it } from "vitest";
import { withOwnServers } from "./support/find-redis.ts";
import { startRedisCluster, type RedisCluster } from "./support/redis-cluster.ts";
import { makeSubject } from "./support/subject.ts";

withOwnServers("a Cluster of three nodes", () => {
  let cluster: RedisCluster | undefined;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.stop());
  runTaskStoreConformance("RedisTaskStore", () => makeSubject(cluster?.ports ?? []), {
    runner: { describe, it, skip: it.skip },
    profile: "shared",
  });
});
