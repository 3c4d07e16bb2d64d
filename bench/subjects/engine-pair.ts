import { TaskLifecycle, type TaskStore } from "@longjobs/core";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";
import { Client, Pool } from "pg";

/** Two instances on one store, each with connections of its own, as two processes have. */
export interface EnginePair {
  readonly worker: TaskLifecycle;
  readonly other: TaskLifecycle;
  close(): Promise<void>;
}

interface OpenStore {
  readonly store: TaskStore;
  readonly release: () => unknown;
}

/** @param notifies - Whether the instances tell each other of changes; else they look for them. */
export async function postgresPair(url: string, schema: string, notifies: boolean): Promise<EnginePair> {
  const open = (): OpenStore & { store: PostgresTaskStore } => {
    const pool = new Pool({ connectionString: url, max: 10 });
    const listen = (): Client => new Client({ connectionString: url });
    const store = new PostgresTaskStore({ pool, schema, ...(notifies ? { listen } : {}) });
    return { store, release: () => pool.end() };
  };
  const [first, second] = [open(), open()];
  await first.store.migrate();
  return pairOf(first, second);
}

/** @param notifies - Whether the instances hear each other's notifications; else they look for changes. */
export function redisPair(url: string, keyPrefix: string, notifies: boolean): EnginePair {
  const open = (): OpenStore => {
    const client = new Redis(url, { maxRetriesPerRequest: 0 });
    // Nobody listens on port 1.
    if (!notifies)
      client.duplicate = () => new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null });
    const store = new RedisTaskStore({ client, keyPrefix, onError: () => undefined });
    return { store, release: () => client.disconnect() };
  };
  return pairOf(open(), open());
}

function pairOf(first: OpenStore, second: OpenStore): EnginePair {
  const worker = new TaskLifecycle({ store: first.store });
  const other = new TaskLifecycle({ store: second.store });
  return {
    worker,
    other,
    close: async () => {
      await Promise.all([worker.close(), other.close()]);
      await Promise.all([first, second].map(({ store }) => store.close()));
      await Promise.all([first.release(), second.release()]);
    },
  };
}
