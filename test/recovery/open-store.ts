import type { ErrorListener, TaskStore } from "@longjobs/core";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { WalTaskStore } from "@longjobs/store-wal";
import { Redis } from "ioredis";
import { Client, Pool } from "pg";

/** Where a fleet keeps its tasks, as it is told to each of its processes. */
export type StorePlace =
  | { readonly kind: "wal"; readonly dir: string }
  | {
      readonly kind: "postgres";
      readonly url: string;
      readonly schema: string;
      /** Whether the processes notify each other of changes. */
      readonly notifies: boolean;
    }
  | {
      readonly kind: "redis";
      readonly url: string;
      readonly keyPrefix: string;
      /** Whether the processes hear each other's notifications. */
      readonly notifies: boolean;
    };

/** Opens the store of a fleet in this process. What it reports in the background goes to `onError`. */
export async function openStore(place: StorePlace, onError: ErrorListener): Promise<TaskStore> {
  switch (place.kind) {
    case "wal":
      return WalTaskStore.open({ dir: place.dir });
    case "postgres":
      return openPostgres(place, onError);
    case "redis":
      return openRedis(place, onError);
  }
}

/** How many processes may use such a store at once. */
export const mostProcesses: { readonly [kind in StorePlace["kind"]]: number } = {
  wal: 1,
  postgres: 4,
  redis: 4,
};

async function openPostgres(
  { url: connectionString, schema, notifies }: Extract<StorePlace, { kind: "postgres" }>,
  onError: ErrorListener,
): Promise<TaskStore> {
  const store = new PostgresTaskStore({
    pool: new Pool({ connectionString, max: 4 }),
    schema,
    watchPollMs: 100,
    onError,
    ...(notifies ? { listen: () => new Client({ connectionString }) } : {}),
  });
  await store.migrate();
  return store;
}

function openRedis(
  { url, keyPrefix, notifies }: Extract<StorePlace, { kind: "redis" }>,
  onError: ErrorListener,
): TaskStore {
  const client = new Redis(url, { maxRetriesPerRequest: 0 });
  // Nobody listens on port 1: the connection for notifications is never had, and that is reported.
  if (!notifies)
    client.duplicate = () => new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null });
  return new RedisTaskStore({ client, keyPrefix, watchPollMs: 100, onError });
}
