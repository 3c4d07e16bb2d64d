import { isLongJobsError } from "@longjobs/core";
import type { Cluster } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { RedisTaskStore } from "../src/index.ts";
import { shardOf } from "../src/store-keys.ts";
import { quietCluster } from "./support/clients.ts";
import { exercise } from "./support/exercise.ts";
import { withOwnServers } from "./support/find-redis.ts";
import { keySlot } from "./support/key-slot.ts";
import { startRedisCluster, type RedisCluster } from "./support/redis-cluster.ts";
import { record } from "./support/records.ts";
import { waitUntil } from "./support/wait-until.ts";

async function testCluster(options: readonly string[] = []): Promise<RedisCluster> {
  const cluster = await startRedisCluster(options);
  onTestFinished(() => cluster.stop());
  return cluster;
}

function storeOn(
  { ports }: RedisCluster,
  onError: (error: unknown) => void = () => undefined,
): { readonly store: RedisTaskStore; readonly client: Cluster } {
  const client = quietCluster(ports);
  const store = new RedisTaskStore({ client, commandTimeoutMs: 2_000, onError });
  onTestFinished(async () => {
    await store.close();
    client.disconnect();
  });
  return { store, client };
}

/** A task that lives on this node. */
function taskOn(node: number, name: string): string {
  for (let attempt = 0; ; attempt += 1) {
    const taskId = `${name}-${attempt}`;
    const slot = keySlot(`longjobs:{${shardOf(taskId)}}:t`);
    if (Math.floor((slot * 3) / 16_384) === node) return taskId;
  }
}

/** One update of the task, which may be refused while nodes find out who is there, and is then there or not. */
async function isServed(store: RedisTaskStore, taskId: string, step: number): Promise<boolean> {
  try {
    return (await store.update(taskId, { statusMessage: `step ${step}` }, step)) === step + 1;
  } catch (error) {
    if (isLongJobsError(error, "version_conflict")) return true;
    if (isLongJobsError(error, "store_unavailable")) return false;
    throw error;
  }
}

withOwnServers("a Cluster", () => {
  it("P44: every call works on every node, and the shards are on all of them", async () => {
    const cluster = await testCluster();
    const { store, client } = storeOn(cluster);
    await exercise(store);
    for (const node of client.nodes("master")) {
      expect((await node.keys("longjobs:{*}:*")).length).toBeGreaterThan(3);
    }
  });

  it("with one node away the tasks of the others are served, and those of the lost one never look unknown", async () => {
    const options = [
      "--cluster-require-full-coverage",
      "no",
      "--cluster-node-timeout",
      "1000",
      "--appendonly",
      "yes",
    ];
    const cluster = await testCluster(options);
    const { store } = storeOn(cluster);
    const [lost, kept] = [taskOn(0, "lost"), taskOn(1, "kept")];
    for (const taskId of [lost, kept]) await store.create(record(taskId, { work: { tool: "t" } }));
    await cluster.nodes[0]?.kill();
    for (let step = 1; step <= 10; step += 1) {
      await expect(store.get(lost)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
      await waitUntil(() => isServed(store, kept, step), "the other nodes serve");
    }
    // They speak for all shards: with one away they cannot.
    await expect(store.claim("owner", 60_000, { limit: 9 })).rejects.toMatchObject({
      code: "store_unavailable",
    });
    await cluster.nodes[0]?.restart();
    await waitUntil(() => isServed(store, lost, 1), "the lost node serves again");
    const claimed = new Set<string>();
    await waitUntil(async () => {
      const some = await store.claim("owner", 60_000, { limit: 9 }).catch(() => []);
      for (const { taskId } of some) claimed.add(taskId);
      return claimed.size === 2;
    }, "both tasks are claimed");
  });

  it("P54: a listener whose node goes connects to another, without a storm, and hears again", async () => {
    const cluster = await testCluster();
    const errors: unknown[] = [];
    const { store, client } = storeOn(cluster, (error) => errors.push(error));
    const taskId = taskOn(1, "task");
    await store.create(record(taskId));
    let hints = 0;
    await store.watch(taskId, () => {
      hints += 1;
    });
    const listeners = await Promise.all(
      client
        .nodes("master")
        .map(async (node) => String(await node.call("PUBSUB", "CHANNELS")).includes(taskId)),
    );
    expect(listeners.filter(Boolean)).toHaveLength(1);
    const node = client.nodes("master")[listeners.indexOf(true)];
    await node?.call("CLIENT", "KILL", "TYPE", "pubsub");
    await waitUntil(() => hints > 0, "the listener is told to look");
    const heard = hints;
    await store.update(taskId, { statusMessage: "changed" }, 1);
    await waitUntil(() => hints > heard, "the listener hears again");
    expect(errors).toHaveLength(1);
  });
});
