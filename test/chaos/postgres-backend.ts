import { PostgresTaskStore } from "@longjobs/store-postgres";
import { Client, Pool } from "pg";

import { OwnServer } from "../../packages/store-postgres/test/support/own-server.ts";
import { lastingTask, type Backend } from "./backend.ts";
import type { Version } from "./history.ts";

export async function startPostgresBackend(schema: string): Promise<Backend> {
  const server = await OwnServer.start();
  const asked = async <Value>(ask: (client: Client) => Promise<Value>): Promise<Value> => {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    try {
      return await ask(client);
    } finally {
      await client.end();
    }
  };
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const store = new PostgresTaskStore({ pool, schema });
  await store.migrate();
  await store.close();
  await pool.end();
  await asked((client) => client.query(recordHistory(schema)));
  return {
    kind: "postgres",
    port: server.port,
    urlAt: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    kill: () => server.kill(),
    restart: () => server.run(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    readVersions: async () => {
      const { rows } = await asked((client) =>
        client.query<HistoryRow>("SELECT * FROM history ORDER BY number"),
      );
      return rows.map(toVersion);
    },
    readLasting: async () => {
      const { rows } = await asked((client) =>
        client.query<{ task_id: string }>(
          `SELECT task_id FROM ${schema}.tasks WHERE expires_at = 'infinity'`,
        ),
      );
      return rows.map(({ task_id: taskId }) => taskId).filter((taskId) => taskId !== lastingTask);
    },
    remove: () => server.remove(),
  };
}

/** The server itself notes every state of a row, in the order in which they are committed for each task. */
function recordHistory(schema: string): string {
  return `
CREATE TABLE history (
  number bigserial PRIMARY KEY, task_id text, version bigint, status text, lease text, attempt text, checkpoint text,
  progress text, inputs text, finished_by text, lease_left_ms float8
);
CREATE FUNCTION note_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.version = NEW.version THEN RETURN NULL; END IF;
  INSERT INTO history (task_id, version, status, lease, attempt, checkpoint, progress, inputs, finished_by, lease_left_ms)
  VALUES (NEW.task_id, NEW.version, NEW.status, NEW.lease, NEW.attempt, NEW.checkpoint, NEW.progress, NEW.inputs,
    NEW.finished_by, CASE WHEN TG_OP = 'UPDATE' AND OLD.lease_token <> NEW.lease_token
      THEN extract(epoch FROM OLD.lease_ends_at - clock_timestamp()) * 1000 END);
  RETURN NULL;
END $$;
CREATE TRIGGER note_state AFTER INSERT OR UPDATE ON ${schema}.tasks FOR EACH ROW EXECUTE FUNCTION note_state();`;
}

interface HistoryRow {
  readonly task_id: string;
  readonly version: string;
  readonly status: Version["status"];
  readonly lease_left_ms: number | null;
  readonly [column: string]: unknown;
}

/** The JSON texts of the columns, under the names of their fields. */
const jsonColumns = ["lease", "attempt", "checkpoint", "progress", "inputs", "finished_by"] as const;

function toVersion(row: HistoryRow): Version {
  const fields = jsonColumns.flatMap((column) => {
    const text = row[column];
    const name = column === "finished_by" ? "finishedBy" : column;
    return typeof text === "string" ? [[name, JSON.parse(text) as unknown]] : [];
  });
  return {
    ...(Object.fromEntries(fields) as Version),
    taskId: row.task_id,
    version: Number(row.version),
    status: row.status,
    ...(row.lease_left_ms === null ? {} : { leaseLeftMs: row.lease_left_ms }),
  };
}
