// Run by a test, and shown in the guide.
// #region listen
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { Client, Pool } from "pg";

const pool = new Pool({ connectionString: process.env["DATABASE_URL"], max: 10 });
const store = new PostgresTaskStore({
  pool,
  // The server itself, not the pooler.
  listen: () => new Client({ connectionString: process.env["DIRECT_DATABASE_URL"], keepAlive: true }),
  onError: (error) => console.error(error),
});
// #endregion

await store.migrate();
await (
  await store.watch("task-1", () => undefined)
)();
await store.close();
await pool.end();
console.log("closed");
