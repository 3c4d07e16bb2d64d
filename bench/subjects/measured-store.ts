import { readFileSync } from "node:fs";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";
import { Client, Pool } from "pg";

/** A store of many processes, and what its server spends on it. */
export interface MeasuredStore {
  readonly store: PostgresTaskStore | RedisTaskStore;
  /** Whether it hears of changes; else it looks for them. */
  readonly notifies: boolean;
  /** Processor time of the server so far, in milliseconds; `undefined` where it runs on another machine. */
  cpuMs(): Promise<number | undefined>;
  /** What the server has written to its log so far, in bytes; `undefined` where it does not say. */
  loggedBytes(): Promise<number | undefined>;
  /** What the server keeps for all tasks of this store, in bytes. */
  keptBytes(): Promise<number>;
  close(): Promise<void>;
}

export async function measuredRedis(url: string, keyPrefix: string): Promise<MeasuredStore> {
  const client = new Redis(url);
  const store = new RedisTaskStore({ client, keyPrefix });
  const figure = async (section: string, name: string): Promise<number> =>
    Number(new RegExp(`^${name}:(\\d+)`, "m").exec(await client.info(section))?.[1]);
  const pid = await figure("server", "process_id");
  return {
    store,
    notifies: true,
    cpuMs: async () => cpuMsOf([pid]),
    loggedBytes: () => Promise.resolve(undefined),
    keptBytes: () => figure("memory", "used_memory"),
    close: async () => {
      await store.close();
      client.disconnect();
    },
  };
}

export async function measuredPostgres(url: string, schema: string): Promise<MeasuredStore> {
  const pool = new Pool({ connectionString: url, max: 10 });
  const store = new PostgresTaskStore({ pool, schema });
  await store.migrate();
  const watcher = new Client({ connectionString: url });
  await watcher.connect();
  return {
    store,
    notifies: false,
    cpuMs: async () => {
      // The processes of all connections, and those that write and vacuum beside them.
      const { rows } = await watcher.query<{ pid: number }>("SELECT pid FROM pg_stat_activity");
      return cpuMsOf(rows.map(({ pid }) => pid));
    },
    loggedBytes: async () => {
      const { rows } = await watcher.query<{ bytes: string }>("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
      return Number(rows[0]?.bytes);
    },
    keptBytes: async () => {
      const { rows } = await watcher.query<{ bytes: string }>("SELECT pg_total_relation_size($1) AS bytes", [
        `${schema}.tasks`,
      ]);
      return Number(rows[0]?.bytes);
    },
    close: async () => {
      await store.close();
      await watcher.end();
      await pool.end();
    },
  };
}

/** Linux counts the time of a process in hundredths of a second. */
const tickMs = 10;

function cpuMsOf(pids: readonly number[]): number | undefined {
  try {
    return pids.reduce((sum, pid) => {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      // After the name, which is in brackets and may have blanks: user time is the 12th field, system time the 13th.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return sum + (Number(fields[11]) + Number(fields[12])) * tickMs;
    }, 0);
  } catch {
    // Not on this machine, or no Linux: there is no figure.
    return undefined;
  }
}
