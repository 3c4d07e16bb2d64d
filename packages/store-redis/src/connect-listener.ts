import { isCluster, type RedisClusterClient, type RedisConnection } from "./client.ts";

/**
 * A connection of our own to the caller's server, not open yet; in a Cluster to any primary, because each tells
 * what happens on all of them. It tries once, whatever the caller's client does: when to try again is decided here.
 */
export function connectListener(client: RedisConnection | RedisClusterClient): RedisConnection | undefined {
  const server = isCluster(client) ? anyOf(client.nodes("master")) : client;
  return server?.duplicate({
    lazyConnect: true,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
  });
}

function anyOf<Value>(values: readonly Value[]): Value | undefined {
  return values[Math.floor(Math.random() * values.length)];
}
