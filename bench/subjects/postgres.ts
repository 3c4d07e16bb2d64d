import { randomBytes } from "node:crypto";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { Client, Pool } from "pg";
import { progressPatches, sampleRecord } from "../sample-record.ts";
import type { UpdateSubject } from "../updates.ts";

/** Where the server is; `undefined` when none answers. */
export async function findPostgres(): Promise<string | undefined> {
  const url = process.env["LONGJOBS_POSTGRES_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres";
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  try {
    await client.connect();
    await client.end();
    return url;
  } catch {
    // No server, no row: the caller says so.
    return undefined;
  }
}

/** Runs on a schema of its own, which goes afterwards. */
export async function inSchema<Value>(url: string, run: (schema: string) => Promise<Value>): Promise<Value> {
  const schema = `bench_${randomBytes(6).toString("hex")}`;
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE SCHEMA "${schema}"`);
  try {
    return await run(schema);
  } finally {
    await client.query(`DROP SCHEMA "${schema}" CASCADE`);
    await client.end();
  }
}

/** Milliseconds from a write in one store to the moment when another store on the same schema hears of it. */
export async function hintDelays(
  url: string,
  schema: string,
  listens: boolean,
  count: number,
): Promise<number[]> {
  const pool = new Pool({ connectionString: url, max: 10 });
  const options = listens ? { listen: () => new Client({ connectionString: url }) } : {};
  const [here, there] = [1, 2].map(() => new PostgresTaskStore({ pool, schema, ...options }));
  if (here === undefined || there === undefined) throw new Error("There are two stores.");
  await here.migrate();
  const record = sampleRecord(crypto.randomUUID());
  await here.create(record);
  let heard = (): void => undefined;
  await there.watch(record.taskId, () => heard());
  // Only who watches listens: both have a listener, as two servers have.
  await here.watch(record.taskId, () => undefined);
  const delays: number[] = [];
  for (let { version } = record; delays.length < count;) {
    const hearing = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const startMs = performance.now();
    version = await here.update(record.taskId, patchOf(delays.length), version);
    await hearing;
    delays.push(performance.now() - startMs);
  }
  await Promise.all([here.close(), there.close()]);
  await pool.end();
  return delays;
}

/** The store, on a pool of ten. */
export async function storeUpdates(
  url: string,
  schema: string,
  preparedStatements: boolean,
): Promise<UpdateSubject> {
  const pool = new Pool({ connectionString: url, max: 10 });
  const store = new PostgresTaskStore({ pool, schema, preparedStatements });
  await store.migrate();
  return {
    name: "longjobs update",
    openTask: async () => {
      const record = sampleRecord(crypto.randomUUID());
      await store.create(record);
      let { version } = record;
      return async (done) => {
        version = await store.update(record.taskId, patchOf(done), version);
      };
    },
    close: async () => {
      await store.close();
      await pool.end();
    },
  };
}

/**
 * The bare client with what a compare-and-swap needs and nothing more: an id, a version, a text of the record, no
 * checks, no expiry, no limit.
 */
export async function rawUpdates(url: string, schema: string, isNamed: boolean): Promise<UpdateSubject> {
  const pool = new Pool({ connectionString: url, max: 10 });
  const table = `"${schema}".raw`;
  await pool.query(
    `CREATE TABLE IF NOT EXISTS ${table} (id text PRIMARY KEY, version bigint NOT NULL, record text NOT NULL) WITH (fillfactor = 80)`,
  );
  const text = `UPDATE ${table} SET version = version + 1, record = $3 WHERE id = $1 AND version = $2`;
  return {
    name: "raw statement",
    openTask: async () => {
      const record = sampleRecord(crypto.randomUUID());
      let { version } = record;
      await pool.query(`INSERT INTO ${table} VALUES ($1, $2, $3)`, [
        record.taskId,
        version,
        JSON.stringify(record),
      ]);
      return async (done) => {
        const values = [record.taskId, version, JSON.stringify({ ...record, ...patchOf(done) })];
        const { rowCount } = await pool.query(isNamed ? { name: "raw", text, values } : { text, values });
        if (rowCount !== 1) throw new Error("conflict");
        version += 1;
      };
    },
    close: () => pool.end(),
  };
}

function patchOf(done: number): (typeof progressPatches)[number] {
  return {
    statusMessage: `Section ${done} of 9`,
    lastUpdatedAt: new Date().toISOString(),
    progress: { done, total: 9 },
  };
}
