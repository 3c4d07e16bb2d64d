import { Redis } from "ioredis";
import { freeNodePort } from "./free-port.ts";
import { startRedisServer, type RedisServer } from "./redis-server.ts";
import { waitUntil } from "./wait-until.ts";

/** A Redis Cluster of three primaries that a test started. */
export interface RedisCluster {
  readonly nodes: readonly RedisServer[];
  readonly ports: readonly number[];
  stop(): Promise<void>;
}

const SLOTS = 16_384;

/** Starts three nodes, gives each a third of the slots, and waits until they agree. */
export async function startRedisCluster(options: readonly string[] = []): Promise<RedisCluster> {
  const start = (): Promise<RedisServer> =>
    startRedisServer(["--cluster-enabled", "yes", ...options], freeNodePort);
  // One after the other: each looks for ports that the others do not have.
  const nodes = [await start(), await start(), await start()];
  const clients = nodes.map(({ port }) => new Redis(port, "127.0.0.1"));
  try {
    for (const [index, client] of clients.entries()) {
      const first = Math.ceil((index * SLOTS) / nodes.length);
      const last = Math.ceil(((index + 1) * SLOTS) / nodes.length);
      await client.cluster("ADDSLOTS", ...Array.from({ length: last - first }, (_, slot) => first + slot));
      await client.cluster("SET-CONFIG-EPOCH", index + 1);
      if (index > 0) await client.cluster("MEET", "127.0.0.1", nodes[0]?.port ?? 0);
    }
    await waitUntil(
      async () => (await Promise.all(clients.map(isWhole))).every(Boolean),
      "the nodes of the cluster agree",
    );
  } finally {
    for (const client of clients) client.disconnect();
  }
  return {
    nodes,
    ports: nodes.map(({ port }) => port),
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

async function isWhole(client: Redis): Promise<boolean> {
  const info = await client.cluster("INFO");
  const slots = (await client.cluster("SLOTS")) as unknown[];
  return /cluster_state:ok/.test(info) && slots.length === 3;
}
