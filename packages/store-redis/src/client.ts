/**
 * What the store needs of an ioredis client, standalone or Cluster, and nothing more. The client stays the
 * caller's: the store sends commands on it and never closes it.
 */
export interface RedisClient {
  /** `"ready"` when commands go out at once. */
  readonly status: string;
  /** Of which only the prefix matters here that the client puts in front of every key. */
  readonly options?: { readonly keyPrefix?: string | undefined } | undefined;
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(source: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  connect(): Promise<unknown>;
  once(event: "ready", listener: () => void): unknown;
}

/** A connection to one server: a standalone client, or a node of a Cluster. */
export interface RedisConnection extends RedisClient {
  /** Another connection to the same server, with these options changed. */
  duplicate(override: object): RedisConnection;
  info(section: string): Promise<unknown>;
  ping(): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  on(event: "message", listener: (channel: string) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  disconnect(): void;
}

/** A client of a Redis Cluster. */
export interface RedisClusterClient extends RedisClient {
  nodes(role: "master"): RedisConnection[];
}

/** True for a client of a Redis Cluster. */
export function isCluster(client: RedisConnection | RedisClusterClient): client is RedisClusterClient {
  return typeof (client as Partial<RedisClusterClient>).nodes === "function";
}
