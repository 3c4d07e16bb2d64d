import type { StoreUnderTest } from "@longjobs/conformance";
import { Client, Pool } from "pg";
import { PostgresTaskStore, type PostgresPool, type PostgresTaskStoreOptions } from "../../src/index.ts";
import { dropSchema, schemaName } from "./fresh-schema.ts";
import { LossyPool } from "./lossy-pool.ts";
import { postgresUrl } from "./with-postgres.ts";

/** How a variant of the store reaches its server. */
export interface Variant {
  readonly options?: Partial<PostgresTaskStoreOptions>;
  /** The pool for each handle. @default a `Pool` of pg */
  readonly openPool?: () => EndablePool;
}

/** A pool that the factory ends: the store does not. */
export type EndablePool = PostgresPool & { end(): Promise<void> };

/** Opens a client for notifications. */
export function listenClient(): Client {
  return new Client({ connectionString: postgresUrl });
}

/** A factory for the suite: each store on a schema of its own, each handle on a pool of its own. */
export function underTest(variant: Variant = {}): () => Promise<StoreUnderTest> {
  const openPool =
    variant.openPool ?? ((): EndablePool => new Pool({ connectionString: postgresUrl, max: 4 }));
  return async () => {
    const schema = schemaName();
    const pools: EndablePool[] = [];
    let lossy: LossyPool | undefined;
    const open = (): PostgresTaskStore => {
      const inner = openPool();
      pools.push(inner);
      lossy = new LossyPool(inner);
      // What fails in the background while the server fails is no finding.
      return new PostgresTaskStore({ pool: lossy, schema, onError: () => {}, ...variant.options });
    };
    const store = open();
    await store.migrate();
    return {
      store,
      advanceTime: (ms) => letTimePass(schema, ms),
      reopen: async () => {
        await store.close();
        return open();
      },
      second: open,
      crash: () => {
        lossy?.die();
        return open();
      },
      fault: () => lossy?.fail() ?? (() => {}),
      dispose: async () => {
        await Promise.all(pools.map((pool) => pool.end()));
        await dropSchema(schema);
      },
    };
  };
}

/** The clock is the server's and cannot be moved: everything that it was read for moves into the past instead. */
async function letTimePass(schema: string, elapsedMs: number): Promise<void> {
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  const moved = ["born_at", "expires_at", "lease_ends_at"].map(
    (column) => `${column} = ${column} - $1::float8 * interval '1 millisecond'`,
  );
  await client.query(`UPDATE "${schema}".tasks SET ${moved.join(", ")}`, [elapsedMs]);
  await client.end();
}
