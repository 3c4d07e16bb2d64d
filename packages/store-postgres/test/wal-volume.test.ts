import { Pool } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { PostgresTaskStore } from "../src/index.ts";
import { OwnServer } from "./support/own-server.ts";
import { bigResult, record } from "./support/records.ts";
import { withOwnServer } from "./support/with-postgres.ts";

// On a server of its own: elsewhere others write too.
withOwnServer("a progress update", () => {
  it("of a task with a field of 256 KiB writes less than 1,024 bytes of write-ahead log", async () => {
    const server = await OwnServer.start();
    const pool = new Pool({ connectionString: server.url });
    onTestFinished(async () => {
      await pool.end();
      await server.remove();
    });
    const store = new PostgresTaskStore({ pool });
    await store.migrate();
    await store.create(record("task-1", { checkpoint: { value: bigResult(256 * 1024), asked: {} } }));
    // The first write to a page after a checkpoint writes the page whole, whoever writes.
    await pool.query("CHECKPOINT");
    await store.update("task-1", { progress: { done: 0 } }, 1);
    const before = await position(pool);
    const updates = 200;
    for (let done = 1; done <= updates; done += 1) {
      await store.update("task-1", { progress: { done }, statusMessage: `Section ${done}` }, done + 1);
    }
    const { rows } = await pool.query<{ bytes: string }>("SELECT pg_wal_lsn_diff($1, $2) AS bytes", [
      await position(pool),
      before,
    ]);
    expect(Number(rows[0]?.bytes) / updates).toBeLessThan(1_024);
  });
});

async function position(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ lsn: string }>("SELECT pg_current_wal_insert_lsn() AS lsn");
  return rows[0]?.lsn ?? "";
}
