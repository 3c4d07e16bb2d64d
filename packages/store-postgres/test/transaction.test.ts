import { expect, it } from "vitest";
import { freshStore } from "./support/fresh-schema.ts";
import { codeOf, record } from "./support/records.ts";
import { withPostgres } from "./support/with-postgres.ts";

const work = { tool: "ship_order", arguments: { order: 7 } };

withPostgres("inTransaction()", () => {
  it("creates a task that exists, and can be claimed, when the transaction has committed, and not before", async () => {
    const { store, pool } = await freshStore();
    const client = await pool.connect();
    await client.query("BEGIN");
    await store.inTransaction(client).create(record("task-1", { work, attempt: 0 }));
    expect(await store.get("task-1")).toBeUndefined();
    expect(await store.claim("worker", 60_000, { limit: 5 })).toEqual([]);
    await client.query("COMMIT");
    client.release();
    const [claimed] = await store.claim("worker", 60_000, { limit: 5, tools: ["ship_order"] });
    expect(claimed).toMatchObject({ taskId: "task-1", attempt: 0, work, lease: { owner: "worker" } });
  });

  it("creates nothing when the transaction is rolled back", async () => {
    const { store, pool } = await freshStore();
    const client = await pool.connect();
    await client.query("BEGIN");
    await store.inTransaction(client).create(record("task-1"));
    await client.query("ROLLBACK");
    client.release();
    expect(await store.get("task-1")).toBeUndefined();
    await store.create(record("task-1"));
  });

  it("leaves the transaction as it is when the id is taken", async () => {
    const { store, pool } = await freshStore();
    await store.create(record("task-1", { statusMessage: "first" }));
    const client = await pool.connect();
    await client.query("BEGIN");
    const door = store.inTransaction(client);
    expect(await codeOf(door.create(record("task-1")))).toBe("task_exists");
    await door.create(record("task-2"));
    await client.query("COMMIT");
    client.release();
    expect((await store.get("task-1"))?.statusMessage).toBe("first");
    expect((await store.get("task-2"))?.taskId).toBe("task-2");
  });

  it("refuses a record with a lease, and everything once the store is closed", async () => {
    const { store, pool } = await freshStore();
    const lease = { owner: "a", token: "t", durationMs: 1 };
    const door = store.inTransaction(pool);
    expect(await codeOf(door.create(record("task-1", { lease })))).toBe("TypeError");
    await store.close();
    expect(await codeOf(door.create(record("task-1")))).toBe("store_closed");
    expect(() => store.inTransaction(pool)).toThrow("closed");
  });

  it("gives a coded error when the transaction is of no use any more", async () => {
    const { store, pool } = await freshStore();
    const client = await pool.connect();
    await client.query("BEGIN");
    await client.query("SELECT 1 / 0").catch(() => undefined);
    expect(await codeOf(store.inTransaction(client).create(record("task-1")))).toBe("store_unavailable");
    await client.query("ROLLBACK");
    client.release();
  });
});
