import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";

/** One queue for all tools: a job says no more than which task is to be run. */
export const queueName = "longjobs";

/** A job in the queue. */
export interface Job {
  readonly taskId: string;
}

const url = process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379";
/** Keys of this run begin with it, those of the queue too. */
const keyPrefix = process.env["KEY_PREFIX"] ?? "longjobs";

/** How a queue and its workers reach Redis. */
export const queueOptions = {
  connection: { url, maxRetriesPerRequest: null },
  prefix: `${keyPrefix}-queue`,
} as const;

/** The store, and what gives its connection back. */
export interface Connection {
  readonly store: RedisTaskStore;
  readonly close: () => Promise<void>;
}

/** Opens the store. */
export function connect(): Connection {
  const client = new Redis(url, { maxRetriesPerRequest: 0 });
  client.on("error", console.error);
  const store = new RedisTaskStore({ client, keyPrefix });
  return {
    store,
    close: async () => {
      await store.close();
      client.disconnect();
    },
  };
}
