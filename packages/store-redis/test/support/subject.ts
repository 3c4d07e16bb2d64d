import { randomUUID } from "node:crypto";
import type { Repair, StoreUnderTest } from "@longjobs/conformance";
import { Cluster, Redis } from "ioredis";
import { RedisTaskStore } from "../../src/index.ts";
import { quietClient, quietCluster } from "./clients.ts";
import { startTcpProxy, type ProxyMode, type TcpProxy } from "./tcp-proxy.ts";
import { waitUntil } from "./wait-until.ts";

/** Each check breaks the way to the server in another of these manners than the one before. */
const faults: readonly ProxyMode[] = ["cut", "deaf", "silent"];
let faultsMade = 0;

/**
 * A store on keys of its own, for the conformance suite. Every handle has a connection of its own, through proxies
 * that can break it.
 *
 * @param ports - The servers: one, or the nodes of a Cluster.
 */
export async function makeSubject(ports: readonly number[]): Promise<StoreUnderTest> {
  const keyPrefix = `test-${randomUUID()}`;
  const proxies = await Promise.all(ports.map((port) => startTcpProxy(port)));
  const clients: (Redis | Cluster)[] = [];
  const open = (): RedisTaskStore => {
    const client = connectThrough(ports, proxies);
    clients.push(client);
    // What fails in the background while the way is broken is no finding.
    return new RedisTaskStore({ client, keyPrefix, commandTimeoutMs: 1_000, onError: () => undefined });
  };
  let store = open();
  return {
    store,
    realTime: true,
    second: open,
    reopen: async () => {
      await store.close();
      return (store = open());
    },
    crash: () => {
      clients[0]?.disconnect();
      return (store = open());
    },
    fault: () => breakProxies(proxies, clients),
    dispose: async () => {
      for (const client of clients) client.disconnect();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await removeKeys(ports, keyPrefix);
    },
  };
}

function connectThrough(ports: readonly number[], proxies: readonly TcpProxy[]): Redis | Cluster {
  const through = proxies.map(({ port }) => port);
  if (through.length === 1) return quietClient(through[0] ?? 0);
  // The nodes name each other by their own ports.
  const natMap = Object.fromEntries(
    ports.map((port, index) => [`127.0.0.1:${port}`, { host: "127.0.0.1", port: through[index] ?? 0 }]),
  );
  return quietCluster(through, { natMap });
}

function breakProxies(proxies: readonly TcpProxy[], clients: readonly (Redis | Cluster)[]): Repair {
  const mode = faults[(faultsMade += 1) % faults.length] ?? "cut";
  for (const proxy of proxies) proxy.mode = mode;
  return async () => {
    for (const proxy of proxies) {
      // What was sent and has had no answer goes with its connection.
      proxy.reset();
      proxy.mode = "open";
    }
    await waitUntil(
      async () => (await Promise.all(clients.map(pings))).every(Boolean),
      "every client has a connection again",
    );
  };
}

async function pings(client: Redis | Cluster): Promise<boolean> {
  return (
    client.status === "ready" &&
    client.ping().then(
      () => true,
      () => false,
    )
  );
}

async function removeKeys(ports: readonly number[], keyPrefix: string): Promise<void> {
  for (const port of ports) {
    const client = new Redis(port, "127.0.0.1");
    for await (const keys of client.scanStream({ match: `${keyPrefix}:*`, count: 1_000 })) {
      for (const key of keys as string[]) await client.del(key);
    }
    client.disconnect();
  }
}
