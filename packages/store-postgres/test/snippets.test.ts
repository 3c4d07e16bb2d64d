import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { OwnServer } from "./support/own-server.ts";
import { withOwnServer } from "./support/with-postgres.ts";

const run = promisify(execFile);

// They use the schema that users have: on a server of their own, where nobody else does.
withOwnServer("what the pages show runs, and ends by itself", () => {
  let server: OwnServer;
  beforeAll(async () => {
    server = await OwnServer.start();
  });
  afterAll(() => server.remove());

  it.each([
    ["first-store", "completed"],
    ["listen", "closed"],
    ["transaction", "ship_order"],
  ])("%s.ts prints %s", async (name, printed) => {
    const env = { ...process.env, DATABASE_URL: server.url, DIRECT_DATABASE_URL: server.url };
    const script = join(import.meta.dirname, "snippets", `${name}.ts`);
    const { stdout } = await run(process.execPath, [script], { env });
    expect(stdout.trim()).toBe(printed);
  });

  it("the statements for the operator", async () => {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    const statements = await operatorStatements();
    expect(statements.length).toBeGreaterThan(3);
    for (const statement of statements) await client.query(statement);
    await client.end();
  });
});

/** The blocks of SQL of the guide. */
async function operatorStatements(): Promise<string[]> {
  const guide = join(import.meta.dirname, "../../../docs/guide/postgres.md");
  const page = await readFile(guide, "utf8");
  return [...page.matchAll(/^```sql\n([^]*?)```/gm)].map(([, statement = ""]) => statement);
}
