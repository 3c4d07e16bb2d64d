import type { TaskStore } from "@longjobs/core";
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
  | { readonly kind: "redis"; readonly url: string; readonly keyPrefix: string };

/** Opens the store of a fleet in this process. */
export async function openStore(place: StorePlace): Promise<TaskStore> {
  switch (place.kind) {
    case "wal":
      return WalTaskStore.open({ dir: place.dir });
    case "postgres":
      return openPostgres(place);
    case "redis":
      return openRedis(place);
  }
}

/** How many processes may use such a store at once. */
export const mostProcesses: { readonly [kind in StorePlace["kind"]]: number } = {
  wal: 1,
  postgres: 4,
  redis: 4,
};

async function openPostgres({
  url: connectionString,
  schema,
  notifies,
}: Extract<StorePlace, { kind: "postgres" }>): Promise<TaskStore> {
  const store = new PostgresTaskStore({
    pool: new Pool({ connectionString, max: 4 }),
    schema,
    watchPollMs: 100,
    ...(notifies ? { listen: () => new Client({ connectionString }) } : {}),
  });
  await store.migrate();
  return store;
}

function openRedis({ url, keyPrefix }: Extract<StorePlace, { kind: "redis" }>): TaskStore {
  return new RedisTaskStore({ client: new Redis(url, { maxRetriesPerRequest: 0 }), keyPrefix });
}
