import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

import type { ReportJson } from "../src/index.ts";
import { runCommand } from "../src/run-command.ts";

const directory = fileURLToPath(new URL(".", import.meta.url));

async function run(...args: string[]): Promise<{ code: number; printed: string; errors: string }> {
  const output = { printed: "", errors: "" };
  const code = await runCommand(args, {
    directory,
    print: (text) => {
      output.printed += text;
    },
    printError: (text) => {
      output.errors += text;
    },
  });
  return { code, ...output };
}

describe("longjobs-conformance", () => {
  test("prints the table for a module that exports a factory, and exits with 0", async () => {
    const { code, printed } = await run("./right-store/child.ts");
    expect(printed).toMatch(/^MapTaskStore \(volatile\)\npassed/);
    expect(code).toBe(0);
  });

  test("--json prints the report for programs", async () => {
    const { code, printed } = await run("--json", "./right-store/child.ts");
    expect(JSON.parse(printed) as ReportJson).toMatchObject({
      name: "MapTaskStore",
      ok: true,
      counts: { failed: 0 },
    });
    expect(code).toBe(0);
  });

  test("exits with 1 when a check fails", async () => {
    const { code, printed } = await run("./wrong-store/child.ts");
    expect(printed).toMatch(/^failed +C8 +update\.applies-patch/m);
    expect(code).toBe(1);
  });

  test.each([[], ["--help"], ["a.ts", "b.ts"]])(
    "shows its usage for %j and exits with 2",
    async (...args) => {
      const { code, errors } = await run(...(args as string[]));
      expect(errors).toContain("Usage:");
      expect(code).toBe(2);
    },
  );

  test.each(["./support/five-methods.ts", "./nowhere.ts"])(
    "says what is wrong with %s and exits with 2",
    async (path) => {
      const { code, errors } = await run(path);
      expect(errors.startsWith(`${path}: `)).toBe(true);
      expect(code).toBe(2);
    },
  );
});
