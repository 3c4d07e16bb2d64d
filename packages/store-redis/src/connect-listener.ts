import { isCluster, type RedisClusterClient, type RedisConnection } from "./client.ts";

/**
 * A connection of our own to the caller's server, not open yet; in a Cluster to any primary, because each tells
 * what happens on all of them. It tries once and keeps nothing for later: when to try again is decided here.
 */
export function connectListener(
  client: RedisConnection | RedisClusterClient,
  connectTimeout: number,
): RedisConnection | undefined {
  const server = isCluster(client) ? anyOf(client.nodes("master")) : client;
  return server?.duplicate({
    lazyConnect: true,
    connectTimeout,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    reconnectOnError: null,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    // The commands of this connection have a deadline already, and silence on it is no fault.
    commandTimeout: undefined,
    socketTimeout: undefined,
  });
}

function anyOf<Value>(values: readonly Value[]): Value | undefined {
  return values[Math.floor(Math.random() * values.length)];
}
