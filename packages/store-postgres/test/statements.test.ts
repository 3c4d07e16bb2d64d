import { globSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { PostgresStatement, PostgresTaskStore } from "../src/index.ts";
import { migrations } from "../src/sql/migrations/index.ts";
import type { Statement } from "../src/sql/statement.ts";
import { updateTask } from "../src/sql/update-task.ts";
import { freshStore } from "./support/fresh-schema.ts";
import { codeOf, record } from "./support/records.ts";
import { tracedPool } from "./support/traced-pool.ts";
import { withPostgres } from "./support/with-postgres.ts";

const folder = join(import.meta.dirname, "../src/sql");
const files = globSync("*.ts", { cwd: folder }).filter((file) => !/^(statement|fragments)/.test(file));

const modules = await Promise.all(
  files.map(async (file) => [file, (await import(join(folder, file))) as Record<string, unknown>] as const),
);

/** Statements of which there is one. The text of an update depends on the fields of the patch. */
const fixed = modules.flatMap(([, exports]) => Object.values(exports).filter(isStatement));
const updates = [false, true].map((counts) =>
  updateTask({ columns: ["status", "lease_ends_at"], others: true, counts }),
);

describe("the statements", () => {
  it.each(modules)("%s has one statement, named like the file", (file, exports) => {
    expect(Object.keys(exports)).toHaveLength(1);
    const [exported] = Object.values(exports);
    const statement = isStatement(exported) ? exported : updates[0];
    expect(`${statement?.name}.ts`).toBe(file);
  });

  it.each([...fixed, ...updates, ...migrations].map((statement) => [statement.name, statement] as const))(
    "%s has a header that names its values, what it returns and what it touches",
    (_name, statement) => {
      const header = statement.header.join("\n");
      expect(header).toMatch(/^-- [a-z-]+: .+\.$/m);
      expect(header).toMatch(/^-- Returns: /m);
      expect(header).toMatch(/^-- Atomic: .+ Touches: .+\.$/m);
      expect(valuesOfHeader(statement)).toEqual(valuesOfBody(statement));
      expect(statement.body).not.toContain("--");
    },
  );
});

withPostgres("the calls", () => {
  it("give each statement as many values as its header names", async () => {
    const { store, pool, another } = await freshStore();
    const sent: PostgresStatement[] = [];
    const recording = tracedPool(pool, (statement, connection) => {
      sent.push(statement);
      return connection.query(statement);
    });
    const recorded = another({ pool: recording, listen: () => Promise.reject(new Error("not here")) });
    await callEverything(recorded);
    await store.close();

    const names = new Set<string>();
    for (const { text, values } of sent) {
      const statement = fixed.find(({ body }) => sameText(body, text));
      // The text of each shape is its own; the numbers of its values still have no gap.
      const count = statement === undefined ? numbersIn(text).length : valuesOfHeader(statement).length;
      names.add(statement?.name ?? "update-task");
      expect([text, values?.length]).toEqual([text, count]);
    }
    expect([...names].toSorted()).toEqual(files.map((file) => file.replace(".ts", "")).toSorted());
  });
});

async function callEverything(store: PostgresTaskStore): Promise<void> {
  await store.create(record("task-1", { lease: { owner: "a", token: "b", durationMs: 1 } }));
  await store.get("task-1");
  await store.update("task-1", { status: "input_required", ttlMs: 60_000, progress: { done: 1 } }, 1);
  await store.update("task-1", { lease: undefined, laterField: 1 } as object, 2);
  await codeOf(store.update("task-1", {}, 1));
  const [claimed] = await store.claim("owner", 60_000, { limit: 1 });
  await store.claim("owner", 60_000, { limit: 1, taskIds: ["task-1"], tools: ["a"] });
  await store.renew([{ taskId: "task-1", token: claimed?.lease?.token ?? "" }], 1_000);
  await store.sweep();
  await (
    await store.watch("task-1", () => undefined)
  )();
  await store.close();
}

function isStatement(exported: unknown): exported is Statement {
  return typeof exported === "object" && exported !== null && "header" in exported && "body" in exported;
}

function valuesOfHeader({ header }: Statement): number[] {
  const values: number[] = [];
  for (const [, first = "", last = first] of header.join("\n").matchAll(/\$(\d+)(?:-\$(\d+))?/g)) {
    for (let value = Number(first); value <= Number(last); value += 1) values.push(value);
  }
  return values;
}

function valuesOfBody({ body }: Statement): number[] {
  return numbersIn(body);
}

function numbersIn(text: string): number[] {
  const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, value]) => Number(value));
  return [...new Set(numbers)].toSorted((left, right) => left - right);
}

function sameText(body: string, text: string): boolean {
  return body.replaceAll("{schema}", "?") === text.replaceAll(/"test_\w+"/g, "?");
}
