import { schemaTooNew, unsuitableServer } from "./postgres-errors.ts";
import type { PostgresConnection, PostgresPool } from "./client.ts";
import { onConnection } from "./on-connection.ts";
import { migrations } from "./sql/migrations/index.ts";
import { bindStatement } from "./sql/statement.ts";

/** A migration may build an index over every task. */
const MIGRATION_MS = 600_000;

/** The oldest Postgres with `gen_random_uuid()` of its own. */
const OLDEST_SERVER = 130_000;

/**
 * Brings a schema to the version of this package, or finds that it is there. One transaction, one at a time: the
 * others wait for its advisory lock, and then find nothing to do.
 *
 * @throws `schema_too_new` when a later version made it; nothing has changed then.
 */
export function migrateSchema(pool: PostgresPool, schema: string): Promise<void> {
  return onConnection(pool, MIGRATION_MS, async (connection) => {
    // First without a lock and without rights: a process that serves needs neither when the schema is there.
    if ((await findVersion(connection, schema)) === migrations.length) return;
    await inTransaction(connection, () => migrate(connection, schema));
  });
}

async function migrate(connection: PostgresConnection, schema: string): Promise<void> {
  await connection.query({
    text: "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
    values: [`longjobs:${schema}`],
  });
  await assertSuitable(connection);
  // Looked at again under the lock: another process may have been faster.
  const found = await findVersion(connection, schema);
  if (found === undefined) {
    await createSchema(connection, schema);
  }
  for (const [index, migration] of migrations.entries()) {
    if (index < (found ?? 0)) continue;
    await connection.query({ text: bindStatement(migration, schema, false).text });
    await connection.query({
      text: `INSERT INTO "${schema}".migrations (version) VALUES ($1)`,
      values: [index + 1],
    });
  }
}

async function createSchema(connection: PostgresConnection, schema: string): Promise<void> {
  const { rows } = await connection.query({
    text: "SELECT 1 FROM pg_namespace WHERE nspname = $1",
    values: [schema],
  });
  // Not IF NOT EXISTS: that asks for the right to create schemas although there is nothing to create.
  if (rows.length === 0) await connection.query({ text: `CREATE SCHEMA "${schema}"` });
  await connection.query({
    text: `CREATE TABLE "${schema}".migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
  });
}

/** The version of the schema; `undefined` when there is none. @throws `schema_too_new` */
async function findVersion(connection: PostgresConnection, schema: string): Promise<number | undefined> {
  const { rows: tables } = await connection.query({
    text: "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'migrations'",
    values: [schema],
  });
  if (tables.length === 0) return undefined;
  const { rows } = await connection.query({
    text: `SELECT coalesce(max(version), 0)::text AS version FROM "${schema}".migrations`,
  });
  const version = Number((rows[0] as { version: string }).version);
  if (version > migrations.length) throw schemaTooNew(schema, version, migrations.length);
  return version;
}

async function assertSuitable(connection: PostgresConnection): Promise<void> {
  const { rows } = await connection.query({
    text: "SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding",
  });
  const { version, encoding } = rows[0] as { version: string; encoding: string };
  if (Number(version) < OLDEST_SERVER) throw unsuitableServer(`is older than Postgres 13 (${version})`);
  if (encoding !== "UTF8") throw unsuitableServer(`has a database in ${encoding}, not in UTF8`);
}

async function inTransaction(connection: PostgresConnection, work: () => Promise<void>): Promise<void> {
  await connection.query({ text: "BEGIN" });
  try {
    await work();
  } catch (error) {
    // On a broken connection there is nothing to roll back: the server does it, and the first error is the one to show.
    await connection.query({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
  await connection.query({ text: "COMMIT" });
}
