// Run by a test, and shown in the README.
// #region first-store
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { Pool } from "pg";

const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
const store = new PostgresTaskStore({ pool });
await store.migrate();

const now = new Date().toISOString();
await store.create({
  taskId: "report-1",
  version: 1,
  status: "working",
  createdAt: now,
  lastUpdatedAt: now,
  ttlMs: 86_400_000,
  attempt: 1,
  crashes: 0,
  retentionMs: 86_400_000,
});
await store.update("report-1", { status: "completed", result: { content: [] } }, 1);
console.log((await store.get("report-1"))?.status); // completed

await store.close();
await pool.end();
// #endregion
