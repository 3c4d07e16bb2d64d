import { spawn } from "node:child_process";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ReportJson } from "@longjobs/conformance";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPackedFolder, removePackedFolder } from "./support/packed-folder.ts";

const thirdParty = join(import.meta.dirname, "third-party");
let folder = "";

beforeAll(async () => {
  folder = await createPackedFolder(["core", "conformance"]);
  await copyFile(join(thirdParty, "folder-task-store.ts"), join(folder, "folder-task-store.ts"));
  await copyFile(join(thirdParty, "under-test.ts"), join(folder, "under-test.ts"));
  await copyFile(join(thirdParty, "suite.ts"), join(folder, "suite.test.ts"));
});

afterAll(() => removePackedFolder(folder));

describe("the packed suite in an empty folder, on a third party's store", () => {
  it("runs under node --test", async () => {
    const { code, output } = await run("node", "--test");
    expect(output).toMatch(/^# fail 0$|^ℹ fail 0$/m);
    expect(Number(/(?:#|ℹ) pass (\d+)/.exec(output)?.[1])).toBeGreaterThan(120);
    expect(code).toBe(0);
  });

  it("runs as a command, whose report is a table or JSON", async () => {
    const table = await run("npx", "--no", "longjobs-conformance", "./under-test.ts");
    expect(table.output).toMatch(/^FolderTaskStore \(durable\)\npassed/);
    expect(table.code).toBe(0);
    const json = await run("npx", "--no", "longjobs-conformance", "./under-test.ts", "--json");
    const report = JSON.parse(json.output) as ReportJson;
    expect(report).toMatchObject({
      name: "FolderTaskStore",
      profile: "durable",
      ok: true,
      counts: { failed: 0 },
    });
    const inapplicable = report.results.filter(({ outcome }) => outcome === "inapplicable");
    expect(inapplicable.filter(({ id }) => !/^(watch|fault)\./.test(id))).toEqual([]);
  });

  it("fails on the same store made wrong, by either way, and names the check", async () => {
    const right = await readFile(join(folder, "folder-task-store.ts"), "utf8");
    const wrong = right.replace(
      "this.#leases.reopened(entry.record)",
      "this.#leases.created(entry.record, this.#now())",
    );
    expect(wrong).not.toBe(right);
    await writeFile(join(folder, "folder-task-store.ts"), wrong);
    const command = await run("npx", "--no", "longjobs-conformance", "./under-test.ts");
    expect(command.output).toMatch(/^failed +C32 +durable\.leases-of-an-earlier-opening/m);
    expect(command.output.split("\n").filter((line) => line.startsWith("failed"))).toHaveLength(1);
    expect(command.code).toBe(1);
    const tests = await run("node", "--test");
    expect(tests.output).toContain("durable.leases-of-an-earlier-opening (C32)");
    expect(tests.output).toMatch(/^(?:#|ℹ) fail [12]$/m);
    expect(tests.code).toBe(1);
  });
});

/** Runs a command in the folder as from a shell of its own, not as a part of these tests. */
async function run(command: string, ...args: string[]): Promise<{ code: number | null; output: string }> {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("close", resolve).on("error", reject);
  });
  return { code, output };
}
