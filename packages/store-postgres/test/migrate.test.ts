import { expect, it } from "vitest";
import { PostgresTaskStore } from "../src/index.ts";
import { dropSchema, freshStore, schemaName, testPool } from "./support/fresh-schema.ts";
import { codeOf, record } from "./support/records.ts";
import { tracedPool } from "./support/traced-pool.ts";
import { withPostgres } from "./support/with-postgres.ts";

withPostgres("migrate()", () => {
  it("refuses a schema of a later version with schema_too_new, and changes nothing", async () => {
    const { store, pool, schema } = await freshStore();
    await store.create(record("task-1"));
    await pool.query(`INSERT INTO "${schema}".migrations (version) VALUES (99)`);
    await expect(store.migrate()).rejects.toMatchObject({
      code: "schema_too_new",
      partial: { format: 99 },
    });
    const { rows } = await pool.query(`SELECT max(version) AS version FROM "${schema}".migrations`);
    expect(rows).toEqual([{ version: 99 }]);
    expect((await store.get("task-1"))?.taskId).toBe("task-1");
  });

  it("leaves nothing behind when it fails in the middle, and can be called again", async () => {
    const { pool, schema } = await freshStore();
    await dropSchema(schema);
    const failing = tracedPool(pool, async (statement, connection) => {
      if (/CREATE TABLE .+tasks/.test(statement.text)) {
        return connection.query({ text: "SELECT 1 / 0" });
      }
      return connection.query(statement);
    });
    expect(await codeOf(new PostgresTaskStore({ pool: failing, schema }).migrate())).toBe(
      "store_unavailable",
    );
    const { rows } = await pool.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
    expect(rows).toEqual([]);
    const store = new PostgresTaskStore({ pool, schema });
    await store.migrate();
    await store.create(record("task-1"));
  });

  it("needs no right to create anything when the schema is there", async () => {
    const { pool, schema } = await freshStore();
    const role = schemaName();
    await pool.query(`
      CREATE ROLE ${role};
      GRANT USAGE ON SCHEMA "${schema}" TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO ${role}`);
    const limited = testPool({ options: `-c role=${role}` });
    const store = new PostgresTaskStore({ pool: limited, schema });
    await store.migrate();
    await store.create(record("task-1"));
    await store.update("task-1", { status: "completed" }, 1);
    expect((await store.get("task-1"))?.status).toBe("completed");
    expect(await store.claim("owner", 1_000, { limit: 1 })).toEqual([]);
    expect(await store.sweep()).toBe(0);

    const missing = new PostgresTaskStore({ pool: limited, schema: schemaName() });
    await expect(missing.migrate()).rejects.toMatchObject({ code: "store_unavailable", retryable: false });
    await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });

  it("takes a schema that is there and empty, with the right to create in it alone", async () => {
    const { pool } = await freshStore();
    const schema = schemaName();
    const role = schemaName();
    await pool.query(`CREATE SCHEMA "${schema}"; CREATE ROLE ${role}`);
    await pool.query(`GRANT USAGE, CREATE ON SCHEMA "${schema}" TO ${role}`);
    const store = new PostgresTaskStore({ pool: testPool({ options: `-c role=${role}` }), schema });
    await store.migrate();
    await store.create(record("task-1"));
    await store.close();
    await dropSchema(schema);
    await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });

  it("quotes the schema: a name with capitals is another schema, and a reserved word is one", async () => {
    for (const schema of [`Upper_${schemaName()}`, "table"]) {
      const store = new PostgresTaskStore({ pool: testPool(), schema });
      await store.migrate();
      await store.create(record("task-1"));
      expect((await store.get("task-1"))?.taskId).toBe("task-1");
      await store.close();
      await dropSchema(schema);
    }
  });
});
