// Everything listed here is public API.
export { RedisTaskStore } from "./redis-task-store.ts";

export type { RedisClient, RedisClusterClient, RedisConnection } from "./client.ts";
export type { RedisTaskStoreOptions } from "./options.ts";
