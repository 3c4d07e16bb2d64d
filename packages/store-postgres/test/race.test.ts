import { Pool } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { PostgresTaskStore } from "../src/index.ts";
import { dropSchema, freshStore, schemaName, testPool } from "./support/fresh-schema.ts";
import { codeOf, record } from "./support/records.ts";
import { postgresUrl, withPostgres } from "./support/with-postgres.ts";

/** Starts of twenty processes at once. Many with LONGJOBS_MIGRATE_ROUNDS, few otherwise. */
const rounds = Number(process.env["LONGJOBS_MIGRATE_ROUNDS"] ?? 3);
const twenty = Array.from({ length: 20 }, (_, index) => index);

withPostgres("several processes at once", () => {
  it(
    `migrate, twenty of them, ${rounds} times: all succeed, and the schema is made once (P52)`,
    async () => {
      const pools = twenty.map(() => new Pool({ connectionString: postgresUrl, max: 1 }));
      onTestFinished(async () => void (await Promise.all(pools.map((pool) => pool.end()))));
      for (let round = 0; round < rounds; round += 1) {
        const schema = schemaName();
        const stores = pools.map((pool) => new PostgresTaskStore({ pool, schema }));
        await Promise.all(stores.map((store) => store.migrate()));
        await Promise.all(stores.map((store, index) => store.create(record(`task-${index}`))));
        const { rows } = (await pools[0]?.query(`SELECT version FROM "${schema}".migrations`)) ?? {};
        expect(rows).toEqual([{ version: 1 }]);
        await dropSchema(schema);
      }
    },
    60_000 + rounds * 5_000,
  );

  it("create one id fifty times over two connections: one record, and the others learn that it exists (P03)", async () => {
    const { store, another, sql } = await freshStore({ pool: testPool({ max: 1 }) });
    const second = another({ pool: testPool({ max: 1 }) });
    const creations = Array.from({ length: 50 }, (_, index) =>
      codeOf((index % 2 === 0 ? store : second).create(record("task-1", { version: index }))),
    );
    const codes = await Promise.all(creations);
    expect(codes.filter((code) => code === undefined)).toHaveLength(1);
    expect(codes.filter((code) => code === "task_exists")).toHaveLength(49);
    expect(await sql("SELECT version FROM tasks")).toEqual([{ version: String(codes.indexOf(undefined)) }]);
  });

  it.each(["read committed", "repeatable read", "serializable"])(
    "write one version at %s: one succeeds, the others conflict, and a claim takes each task once",
    async (isolation) => {
      const options = `-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}`;
      const pool = testPool({ options, max: 8 });
      const { store } = await freshStore({ pool });
      for (let round = 0; round < 5; round += 1) {
        const taskId = `task-${round}`;
        await store.create(record(taskId));
        const codes = await Promise.all(
          twenty.map((index) => codeOf(store.update(taskId, { progress: { done: index } }, 1))),
        );
        expect(codes.filter((code) => code === undefined)).toHaveLength(1);
        expect(codes.filter((code) => code === "version_conflict")).toHaveLength(19);
      }
      const claims = await Promise.all(
        twenty.map((index) => store.claim(`owner-${index}`, 60_000, { limit: 3 })),
      );
      const taken = claims.flat().map(({ taskId }) => taskId);
      expect(taken.toSorted()).toEqual([...new Set(taken)].toSorted());
      expect(await store.claim("last", 60_000, { limit: 9 })).toHaveLength(5 - taken.length);
    },
  );

  it("renew the same leases in opposite orders without a deadlock that anybody sees", async () => {
    const { store, another } = await freshStore();
    const ids = Array.from({ length: 200 }, (_, index) => `task-${index}`);
    const lease = { owner: "a", token: "t", durationMs: 60_000 };
    await Promise.all(ids.map((taskId) => store.create(record(taskId, { lease }))));
    const held = ids.map((taskId) => ({ taskId, token: "t" }));
    const second = another();
    const lost = await Promise.all(
      twenty.map((index) =>
        index % 2 === 0 ? store.renew(held, 60_000) : second.renew(held.toReversed(), 60_000),
      ),
    );
    expect(lost.flat()).toEqual([]);
  });
});
