import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { OpenSubject, Subject } from "../subject.ts";

/** The statements that both SQLite drivers share. */
interface Database {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: (string | number)[]): { changes: number | bigint };
    get(...values: (string | number)[]): unknown;
  };
  close(): unknown;
}

/** What a server author would write with Node's own SQLite: one row per task, compare-and-swap by version. */
export function nodeSqlite(synchronous: "FULL" | "NORMAL"): Subject {
  return {
    name: `node:sqlite ${synchronous}`,
    open: async (dir) => openTable(new DatabaseSync(join(dir, "tasks.db")), synchronous),
  };
}

/** The same on `better-sqlite3`, or `undefined` where it is not installed. */
export async function betterSqlite(synchronous: "FULL" | "NORMAL"): Promise<Subject | undefined> {
  // Without types, and without a static import: the benchmark runs where no binary of it fits.
  const driver: { default: new (path: string) => Database } | undefined = await import(
    betterSqliteName
  ).catch(() => undefined);
  if (driver === undefined) return undefined;
  return {
    name: `better-sqlite3 ${synchronous}`,
    open: async (dir) => openTable(new driver.default(join(dir, "tasks.db")), synchronous),
  };
}

const betterSqliteName: string = "better-sqlite3";

function openTable(database: Database, synchronous: string): OpenSubject {
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous};`);
  database.exec("CREATE TABLE tasks (id TEXT PRIMARY KEY, version INTEGER NOT NULL, record TEXT NOT NULL)");
  const insert = database.prepare("INSERT INTO tasks (id, version, record) VALUES (?, ?, ?)");
  const select = database.prepare("SELECT record FROM tasks WHERE id = ?");
  const update = database.prepare("UPDATE tasks SET version = ?, record = ? WHERE id = ? AND version = ?");
  const read = (taskId: string): object =>
    JSON.parse((select.get(taskId) as { record: string }).record) as object;
  return {
    create: async (record) => void insert.run(record.taskId, record.version, JSON.stringify(record)),
    get: async (taskId) => read(taskId),
    update: async (taskId, patch, expectedVersion) => {
      const version = expectedVersion + 1;
      const record = JSON.stringify({ ...read(taskId), ...patch, version });
      if (Number(update.run(version, record, taskId, expectedVersion).changes) !== 1)
        throw new Error("conflict");
      return version;
    },
    close: async () => void database.close(),
  };
}
