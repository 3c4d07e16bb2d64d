import { randomBytes } from "node:crypto";
import { Client, Pool } from "pg";
import { onTestFinished } from "vitest";
import { PostgresTaskStore, type PostgresTaskStoreOptions } from "../../src/index.ts";
import { postgresUrl } from "./with-postgres.ts";

/** The name of a schema that no other test has. */
export function schemaName(): string {
  return `test_${randomBytes(6).toString("hex")}`;
}

/** Removes a schema with everything in it. */
export async function dropSchema(schema: string, url: string = postgresUrl): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
  await client.end();
}

/** A pool that ends with the test. `options` are settings of each connection, such as `-c role=reader`. */
export function testPool(settings: { max?: number; url?: string; options?: string } = {}): Pool {
  const { max = 4, options, url = postgresUrl } = settings;
  const pool = new Pool({ connectionString: url, max, ...(options === undefined ? {} : { options }) });
  onTestFinished(() => pool.end());
  return pool;
}

/** A store on a schema of its own, which is dropped when the test succeeds, and everything the store reported. */
export interface FreshStore {
  readonly store: PostgresTaskStore;
  readonly pool: Pool;
  readonly schema: string;
  readonly errors: unknown[];
  /** Another store on the same schema, closed with the test. */
  readonly another: (options?: Partial<PostgresTaskStoreOptions>) => PostgresTaskStore;
  /** Runs any statement; `tasks` is the table. */
  readonly sql: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
}

export async function freshStore(options: Partial<PostgresTaskStoreOptions> = {}): Promise<FreshStore> {
  const schema = schemaName();
  const pool = testPool();
  onTestFinished(async ({ task }) => {
    if (task.result?.state !== "fail") await dropSchema(schema);
  });
  const errors: unknown[] = [];
  const another = (more: Partial<PostgresTaskStoreOptions> = {}): PostgresTaskStore => {
    const onError = (error: unknown): void => void errors.push(error);
    const store = new PostgresTaskStore({ pool, schema, onError, ...options, ...more });
    onTestFinished(() => store.close());
    return store;
  };
  const store = another();
  await store.migrate();
  const sql = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
    const { rows } = await pool.query(text.replaceAll("tasks", `"${schema}".tasks`), values);
    return rows as Record<string, unknown>[];
  };
  return { store, pool, schema, errors, another, sql };
}
