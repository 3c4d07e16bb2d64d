// Run by a test, and shown in the guide.
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { Pool } from "pg";

const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
const store = new PostgresTaskStore({ pool });
await store.migrate();
await pool.query("CREATE TABLE IF NOT EXISTS longjobs.orders (id uuid PRIMARY KEY)");

// #region transaction
/** Keeps an order, and the task that ships it: both, or neither. */
async function placeOrder(order: string): Promise<string> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query("INSERT INTO longjobs.orders (id) VALUES ($1)", [order]);
    const now = new Date().toISOString();
    const taskId = crypto.randomUUID();
    await store.inTransaction(client).create({
      taskId,
      version: Math.floor(Math.random() * 2 ** 31),
      status: "working",
      createdAt: now,
      lastUpdatedAt: now,
      ttlMs: null,
      retentionMs: 86_400_000,
      attempt: 0,
      crashes: 0,
      work: { tool: "ship_order", arguments: { order } },
    });
    await client.query("COMMIT");
    return taskId;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}
// #endregion

const taskId = await placeOrder(crypto.randomUUID());
console.log((await store.get(taskId))?.work?.tool);
await store.close();
await pool.end();
