import { createHash } from "node:crypto";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { Client, Pool } from "pg";
import { PgBoss } from "pg-boss";

/** One queue for all tools: a job says no more than which task is to be run. */
export const queue = "longjobs";

/** A job in the queue. */
export interface Job {
  readonly taskId: string;
}

const url = process.env["DATABASE_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres";
/** Tables of this run; the queue has a schema of its own beside it. */
const schema = process.env["SCHEMA"] ?? "longjobs";

/** The store and the queue, both in Postgres. */
export interface Connections {
  readonly store: PostgresTaskStore;
  readonly boss: PgBoss;
  /** Gives everything back; the store is closed first. */
  readonly close: () => Promise<void>;
}

/** Opens the store and the queue, and makes their tables where they are missing. */
export async function connect(): Promise<Connections> {
  const pool = new Pool({ connectionString: url, max: 10 });
  pool.on("error", console.error);
  const store = new PostgresTaskStore({ pool, schema, listen: () => new Client(url) });
  await store.migrate();
  const boss = new PgBoss({ connectionString: url, schema: `${schema}_queue`, max: 5 });
  boss.on("error", console.error);
  await boss.start();
  // Redelivery is the queue's: often enough to outlive every lease. A task runs once at a time, however often it comes.
  await boss.createQueue(queue, { retryLimit: 100, retryDelay: 1, expireInSeconds: 30 });
  return {
    store,
    boss,
    close: async () => {
      await boss.stop({ graceful: false });
      await store.close();
      await pool.end();
    },
  };
}

/** The id of a delivery, as the queue wants it: the same task and attempt are the same job. */
export function jobId(taskId: string, attempt: number): string {
  const hex = createHash("sha256").update(`${taskId} ${attempt}`).digest("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
}
