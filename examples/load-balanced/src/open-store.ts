import type { TaskStore } from "@longjobs/core";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";
import { Client, Pool } from "pg";

/** Which store the instances share, and where. */
export interface StorePlace {
  readonly kind: "redis" | "postgres";
  readonly url: string;
  /** The prefix of the keys, or the name of the schema: instances with one name share their tasks. */
  readonly name: string;
}

/** A store, and what gives its connections back. */
export interface OpenStore {
  readonly store: TaskStore;
  readonly release: () => Promise<void>;
}

/** The store that the environment names: `STORE`, `REDIS_URL` or `POSTGRES_URL`, `STORE_NAME`. */
export function placeFromEnv(env: NodeJS.ProcessEnv = process.env): StorePlace {
  const kind = env["STORE"] === "postgres" ? "postgres" : "redis";
  const name = env["STORE_NAME"] ?? "longjobs";
  return kind === "redis"
    ? { kind, name, url: env["REDIS_URL"] ?? "redis://127.0.0.1:6379" }
    : { kind, name, url: env["POSTGRES_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres" };
}

// #region open
/** Opens the store of this instance. This is all that a server changes to have neighbours. */
export async function openStore(place: StorePlace): Promise<OpenStore> {
  return place.kind === "redis" ? openRedis(place) : openPostgres(place);
}

function openRedis({ url, name }: StorePlace): OpenStore {
  const client = new Redis(url, {
    // A command that a broken connection cut off is told of at once, and never sent again later.
    maxRetriesPerRequest: 0,
    // A connection that is dead without saying so is replaced.
    socketTimeout: 5_000,
  });
  client.on("error", (error) => console.error(error.message));
  const store = new RedisTaskStore({ client, keyPrefix: name });
  return {
    store,
    release: async () => {
      await store.close();
      client.disconnect();
    },
  };
}

async function openPostgres({ url: connectionString, name }: StorePlace): Promise<OpenStore> {
  const pool = new Pool({ connectionString, max: 10, keepAlive: true });
  const store = new PostgresTaskStore({
    pool,
    schema: name,
    // Around a pooler, if there is one: to the server itself.
    listen: () => new Client({ connectionString, keepAlive: true }),
  });
  await store.migrate();
  return {
    store,
    release: async () => {
      await store.close();
      await pool.end();
    },
  };
}
// #endregion
