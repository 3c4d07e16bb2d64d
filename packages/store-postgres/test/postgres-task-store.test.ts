import { expect, it, vi } from "vitest";
import { types } from "pg";
import { bigResult, codeOf, record } from "./support/records.ts";
import { freshStore, schemaName, testPool } from "./support/fresh-schema.ts";
import { tracedPool } from "./support/traced-pool.ts";
import { withPostgres } from "./support/with-postgres.ts";
import { PostgresTaskStore } from "../src/index.ts";

withPostgres("what Postgres keeps", () => {
  it.each([
    ["that knows the task", false],
    ["that has not seen it", true],
  ])(
    "holds the limit to the byte, whatever came and went before, in a store %s",
    async (_name, isStranger) => {
      const { store: first, another } = await freshStore({ maxRecordBytes: 1_000 });
      let store = first;
      const taskId = 'id "with" \u0000 marks';
      const version = 100;
      await store.create(
        record(taskId, { version, statusMessage: "Grüße \uD800", scope: "a/b", kind: "file" }),
      );
      // What was replaced does not count, though the bound that the store keeps has grown beyond the limit.
      for (let step = 0; step < 9; step += 1) {
        const patch = { data: "x".repeat(300), status: "input_required", ttlMs: 60_000 + step } as const;
        await store.update(taskId, patch, version + step);
      }
      const kept = (await store.get(taskId)) ?? record(taskId);
      const room = 1_000 - Buffer.byteLength(JSON.stringify({ ...kept, data: "" }));
      if (isStranger) store = another();
      const tooMuch = { data: "x".repeat(room + 1) };
      await expect(store.update(taskId, tooMuch, 109)).rejects.toMatchObject({
        code: "record_too_large",
        partial: { bytes: 1_001, maxBytes: 1_000 },
      });
      expect(await store.get(taskId)).toEqual(kept);
      expect(await store.update(taskId, { data: "x".repeat(room) }, 109)).toBe(110);
      expect(Buffer.byteLength(JSON.stringify(await store.get(taskId)))).toBe(1_000);
      expect(await codeOf(store.update(taskId, { scope: "a/bc" }, 110))).toBe("record_too_large");
      expect(await store.update(taskId, { scope: undefined }, 110)).toBe(111);
    },
  );

  it("holds the limit when another store has made the record larger since", async () => {
    const { store, another } = await freshStore({ maxRecordBytes: 1_000 });
    const second = another();
    await store.create(record("task-1"));
    await second.update("task-1", { data: "x".repeat(600) }, 1);
    expect(await codeOf(store.update("task-1", { scope: "x".repeat(300) }, 2))).toBe("record_too_large");
    expect(await store.update("task-1", { scope: "x".repeat(30) }, 2)).toBe(3);
  });

  it("lets a claim pass the limit, and counts its lease in the next update", async () => {
    const { store } = await freshStore({ maxRecordBytes: 1_000 });
    const room = 950 - Buffer.byteLength(JSON.stringify(record("task-1", { data: "" })));
    await store.create(record("task-1", { data: "x".repeat(room) }));
    const [claimed] = await store.claim("owner", 60_000, { limit: 1 });
    expect(Buffer.byteLength(JSON.stringify(claimed))).toBeGreaterThan(1_000);
    expect(await codeOf(store.update("task-1", { scope: "a" }, 2))).toBe("record_too_large");
    expect(await store.update("task-1", { lease: undefined, scope: "a" }, 2)).toBe(3);
  });

  it("leaves a large field where it is when another field changes", async () => {
    const { store, sql } = await freshStore();
    const result = bigResult(64 * 1024);
    await store.create(record("task-1", { result, checkpoint: { value: bigResult(700), asked: {} } }));
    const [table] = await sql(
      "SELECT reltoastrelid::regclass::text AS name FROM pg_class WHERE oid = 'tasks'::regclass",
    );
    const chunks = (): Promise<object[]> =>
      sql(`SELECT chunk_id, chunk_seq, xmin::text FROM ${String(table?.["name"])} ORDER BY 1, 2`);
    const before = await chunks();
    for (let version = 1; version <= 20; version += 1) {
      await store.update("task-1", { progress: { done: version }, statusMessage: `at ${version}` }, version);
    }
    await store.claim("owner", 30_000, { limit: 1 });
    await store.renew([{ taskId: "task-1", token: (await store.get("task-1"))?.lease?.token ?? "" }], 1_000);
    expect(before.length).toBeGreaterThan(20);
    expect(await chunks()).toEqual(before);
    expect((await store.get("task-1"))?.result).toEqual(result);
  });

  it("finds a task, the free ones and the expired ones by an index", async () => {
    const { sql, pool, schema, another } = await freshStore();
    await sql(`
      INSERT INTO tasks (task_id, version, status, lease_ends_at, expires_at)
      SELECT 'task-' || n, 1, CASE WHEN n % 10 = 0 THEN 'working' ELSE 'completed' END,
        clock_timestamp() + interval '1 hour', clock_timestamp() + interval '1 day'
      FROM generate_series(1, 20000) n`);
    await pool.query(`ANALYZE "${schema}".tasks`);
    const plans: string[] = [];
    const explained = another({
      pool: tracedPool(pool, async (statement, connection) => {
        const { rows } = await connection.query({ ...statement, text: `EXPLAIN ${statement.text}` });
        plans.push((rows as { "QUERY PLAN": string }[]).map((row) => row["QUERY PLAN"]).join("\n"));
        return { rows: [], rowCount: 0 };
      }),
    });
    await explained.get("task-7");
    await explained.claim("owner", 1_000, { limit: 5 });
    await explained.claim("owner", 1_000, { limit: 5, tools: ["render"] });
    await explained.claim("owner", 1_000, { limit: 5, taskIds: ["task-7"] });
    await explained.renew([{ taskId: "task-7", token: "none" }], 1_000);
    await explained.sweep();
    expect(plans).toHaveLength(6);
    for (const plan of plans) {
      expect(plan).not.toMatch(/Seq Scan on tasks/);
      expect(plan).toMatch(/tasks_pkey|tasks_claimable|tasks_expiring/);
    }
  });

  it("sweeps in batches, and leaves no row behind (P23)", async () => {
    const { store, sql } = await freshStore();
    await store.create(record("stays", { ttlMs: 60_000 }));
    await sql(`INSERT INTO tasks (task_id, version, status, expires_at)
      SELECT 'task-' || n, 1, 'completed', clock_timestamp() FROM generate_series(1, 1200) n`);
    expect(await store.sweep()).toBe(1200);
    expect(await sql("SELECT task_id FROM tasks")).toEqual([{ task_id: "stays" }]);
  });

  it("has a clock of the server's, wherever the clock of this process stands (P16)", async () => {
    const { store, another } = await freshStore();
    const lease = { owner: "first", token: "token-1", durationMs: 60_000 };
    await store.create(record("task-1", { lease, ttlMs: 120_000 }));
    const neighbour = another();
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      for (const aheadMs of [300_000, -300_000]) {
        vi.setSystemTime(Date.now() + aheadMs);
        expect(await neighbour.claim("second", 60_000, { limit: 5 })).toEqual([]);
        expect(await neighbour.sweep()).toBe(0);
        expect(await neighbour.renew([{ taskId: "task-1", token: "token-1" }], 60_000)).toEqual([]);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it("fences an owner whose lease was taken: its token and its version are stale (P17)", async () => {
    const { store, another } = await freshStore();
    const neighbour = another();
    await store.create(record("task-1", { lease: { owner: "a", token: "old", durationMs: 1 } }));
    await vi.waitFor(async () => {
      expect(await neighbour.claim("a", 60_000, { limit: 1 })).toHaveLength(1);
    });
    const token = (await store.get("task-1"))?.lease?.token;
    expect(token).not.toBe("old");
    expect(await store.renew([{ taskId: "task-1", token: "old" }], 60_000)).toEqual(["task-1"]);
    expect(await codeOf(store.update("task-1", { status: "completed", result: {} }, 1))).toBe(
      "version_conflict",
    );
    await store.update("task-1", { lease: undefined }, 2);
    const [again] = await neighbour.claim("a", 60_000, { limit: 1 });
    expect(again?.lease?.token).not.toBe(token);
  });

  it("gives versions as they are, whatever the types of the pool, and refuses ones beyond 2^53", async () => {
    const { store, sql, schema } = await freshStore();
    const pool = testPool();
    types.setTypeParser(types.builtins.INT8, BigInt);
    try {
      const other = new PostgresTaskStore({ pool, schema });
      await other.create(record("task-1", { version: Number.MAX_SAFE_INTEGER - 1 }));
      expect(await other.update("task-1", {}, Number.MAX_SAFE_INTEGER - 1)).toBe(Number.MAX_SAFE_INTEGER);
      expect(await codeOf(other.update("task-1", {}, 7))).toBe("version_conflict");
      expect(await codeOf(other.update("task-1", {}, Number.NaN))).toBe("version_conflict");
      expect(await codeOf(other.update("task-1", {}, Number.MAX_SAFE_INTEGER))).toBe("version_conflict");
      expect((await other.get("task-1"))?.version).toBe(Number.MAX_SAFE_INTEGER);
    } finally {
      types.setTypeParser(types.builtins.INT8, String);
    }
    await sql("UPDATE tasks SET version = 9007199254740993");
    expect(await codeOf(store.get("task-1"))).toBe("record_corrupt");
    expect(await codeOf(store.create(record("task-2", { version: 2 ** 53 })))).toBe("TypeError");
  });

  it("refuses an id that no index holds, and looks for one without harm", async () => {
    const { store } = await freshStore();
    const taskId = "x".repeat(10_000);
    expect(await codeOf(store.create(record(taskId)))).toBe("record_too_large");
    expect(await store.get(taskId)).toBeUndefined();
    expect(await codeOf(store.update(taskId, {}, 1))).toBe("unknown_task");
  });

  it("keeps a life beyond the end of dates, and a field of a later contract, large too", async () => {
    const { store } = await freshStore();
    const later = { laterField: bigResult(20_000), "nul\u0000": "\uD800", __proto__x: null };
    const kept = { ...record("task-1", { ttlMs: Number.MAX_SAFE_INTEGER }), ...later };
    await store.create(kept);
    expect(await store.get("task-1")).toEqual(kept);
    await store.update("task-1", { laterField: undefined, another: [1] } as object, 1);
    const { laterField: _gone, ...rest } = kept;
    expect(await store.get("task-1")).toEqual({ ...rest, another: [1], version: 2 });
  });

  it("counts the fields without a column against the limit", async () => {
    const { store } = await freshStore({ maxRecordBytes: 2_000 });
    await store.create(record("task-1"));
    await store.update("task-1", { a: "x".repeat(700), b: "x".repeat(700) } as object, 1);
    const before = await store.get("task-1");
    const third = { c: "x".repeat(700) } as object;
    expect(await codeOf(store.update("task-1", third, 2))).toBe("record_too_large");
    expect(await store.get("task-1")).toEqual(before);
    await store.update("task-1", { ...third, a: undefined } as object, 2);
  });

  it("tells a store without tables that migrate() is missing", async () => {
    const store = new PostgresTaskStore({ pool: testPool(), schema: schemaName() });
    await expect(store.get("task-1")).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("migrate()"),
    });
    expect(await codeOf(store.create(record("task-1")))).toBe("store_unavailable");
  });

  it("reports what stands in a row that is no record as record_corrupt", async () => {
    const { store, sql } = await freshStore();
    await store.create(record("task-1"));
    await store.create(record("task-2"));
    await sql("UPDATE tasks SET result = '{' WHERE task_id = 'task-1'");
    expect(await codeOf(store.get("task-1"))).toBe("record_corrupt");
    expect((await store.get("task-2"))?.taskId).toBe("task-2");
  });
});
