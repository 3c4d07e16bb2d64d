import { Cluster, Redis, type ClusterOptions, type RedisOptions } from "ioredis";

/** The options without the one that decides the type of replies. */
type RedisSettings = Omit<RedisOptions, "replyMapping">;
type ClusterSettings = Omit<ClusterOptions, "redisOptions">;

/** As the guide recommends: a command that was cut off is told of at once and never sent again later. */
const recommended = { maxRetriesPerRequest: 0, connectTimeout: 2_000 };

/** A client whose lost connections are what the test is about. */
export function quietClient(port: number, options: RedisSettings = {}): Redis {
  const client = new Redis(port, "127.0.0.1", { ...recommended, retryStrategy: () => 20, ...options });
  client.on("error", () => undefined);
  return client;
}

export function quietCluster(ports: readonly number[], options: ClusterSettings = {}): Cluster {
  const nodes = ports.map((port) => ({ host: "127.0.0.1", port }));
  const client = new Cluster(nodes, {
    retryDelayOnFailover: 0,
    clusterRetryStrategy: () => 20,
    redisOptions: recommended,
    ...options,
  });
  client.on("error", () => undefined);
  return client;
}
