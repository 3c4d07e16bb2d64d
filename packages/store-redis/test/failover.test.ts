import { isLongJobsError } from "@longjobs/core";
import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { RedisTaskStore } from "../src/index.ts";
import { withOwnServers } from "./support/find-redis.ts";
import { record } from "./support/records.ts";
import { startSentinel } from "./support/redis-server.ts";
import { testClient, testServer } from "./support/store-fixture.ts";
import { waitUntil } from "./support/wait-until.ts";

withOwnServers("a failover by Sentinel", () => {
  it("the store goes on with the replica that took over: what had reached it is there, and watches hear again", async () => {
    const primary = await testServer();
    const replica = await testServer(["--replicaof", "127.0.0.1", String(primary.port)]);
    const sentinel = await startSentinel(primary.port);
    onTestFinished(() => sentinel.stop());
    const client = new Redis({
      sentinels: [{ host: "127.0.0.1", port: sentinel.port }],
      name: "tasks",
      maxRetriesPerRequest: 0,
      retryStrategy: () => 50,
      sentinelRetryStrategy: () => 50,
    });
    client.on("error", () => undefined);
    const store = new RedisTaskStore({ client, commandTimeoutMs: 1_000, onError: () => undefined });
    onTestFinished(async () => {
      await store.close();
      client.disconnect();
    });
    const lease = { owner: "owner", token: "token", durationMs: 60_000 };
    await store.create(record("held", { work: { tool: "t" }, lease }));
    await store.create(record("free", { work: { tool: "t" } }));
    let hints = 0;
    await store.watch("held", () => {
      hints += 1;
    });
    const admin = testClient(primary.url);
    await waitUntil(async () => (await admin.wait(1, 100)) === 1, "the replica follows");
    await primary.kill();
    await waitUntil(async () => {
      try {
        await store.update("held", { statusMessage: "after the failover" }, 1);
        return true;
      } catch (error) {
        if (isLongJobsError(error, "version_conflict")) return true;
        if (!isLongJobsError(error, "store_unavailable")) throw error;
        return false;
      }
    }, "the replica takes over");
    expect(await testClient(replica.url).role()).toContain("master");
    expect(await store.get("held")).toMatchObject({ statusMessage: "after the failover", version: 2, lease });
    expect(await store.renew([{ taskId: "held", token: "token" }], 60_000)).toEqual([]);
    expect((await store.claim("other", 60_000, { limit: 9 })).map(({ taskId }) => taskId)).toEqual(["free"]);
    const heard = hints;
    await waitUntil(async () => {
      const { version = 0 } = (await store.get("held")) ?? {};
      await store.update("held", { progress: { done: version } }, version);
      return hints > heard;
    }, "the watch hears again");
  });
});
