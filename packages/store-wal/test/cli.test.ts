import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { withBytes, writeSmallLog } from "./support/small-log.ts";
import { tempDir } from "./support/temp-dir.ts";
import { runWal } from "./support/wal-command.ts";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  bin: Record<string, string>;
};
const program = fileURLToPath(new URL(`../${manifest.bin["longjobs-wal"]}`, import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly printed: string;
  readonly errors: string;
}

/** The built command as a process of its own. */
async function run(args: readonly string[], cwd?: string): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], { cwd });
  const [printed, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return { code, printed, errors };
}

test("the package has this command and no other", () => {
  expect(manifest.bin).toEqual({ "longjobs-wal": "./dist/cli.js" });
  expect(readFileSync(program, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
});

test("the built command inspects, verifies and repairs, with paths from where it runs", async () => {
  const root = tempDir();
  const log = await writeSmallLog(root, "closed");
  for (const command of ["inspect", "verify"]) {
    const { code, printed, errors } = await run([command, "log"], root);
    expect([code, errors]).toEqual([0, ""]);
    expect(printed).toMatch(/^4 tasks, .+: no damage$/m);
  }
  expect(await run(["repair", "log", "--to", "new"], root)).toMatchObject({ code: 0, errors: "" });
  expect(JSON.parse((await run(["verify", "new", "--json"], root)).printed)).toMatchObject({
    dir: join(root, "new"),
    counts: { healthyTasks: 4 },
  });
  const bytes = Buffer.from(log.bytes);
  bytes[bytes.length - 40] = 0;
  await withBytes(log, bytes, async (dir) => {
    const { code, printed } = await run(["verify", dir]);
    expect(code).toBe(1);
    expect(printed).toContain("damaged: one\n");
  });
});

test("the built command refuses the log that this process has open", async () => {
  const dir = tempDir();
  await openStore(dir);
  const { code, printed, errors } = await run(["verify", dir]);
  expect([code, printed]).toEqual([3, ""]);
  expect(errors).toContain(`${dir} is in use by process ${process.pid}`);
});

test("a reader that stops early is no failure, and a document of many megabytes comes whole", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir, { fsync: false });
  const result = bigResult(1_000_000);
  for (let index = 0; index < 20; index += 1) await store.create(record(`task-${index}`, { result }));
  await store.close();
  const { code, printed } = await run(["inspect", dir, "--json", "--payloads"]);
  const { tasks } = JSON.parse(printed) as { tasks: { record: { result: unknown } }[] };
  expect(code).toBe(0);
  expect(tasks.map((task) => task.record.result)).toEqual(Array.from({ length: 20 }, () => result));

  const child = spawn(process.execPath, [program, "inspect", dir, "--json", "--payloads"]);
  child.stdout.once("data", () => child.stdout.destroy());
  const [errors, [exit]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([exit, errors]).toEqual([0, ""]);
});

test("--help prints the usage with the exit codes and exits with 0", async () => {
  const { code, printed, errors } = await run(["--help"]);
  expect([code, errors]).toEqual([0, ""]);
  expect(printed).toMatch(/^Usage: longjobs-wal COMMAND DIR/);
  for (const exit of [0, 1, 2, 3]) expect(printed).toMatch(new RegExp(`\\b${exit}: `));
});

test.each([
  [],
  ["heal", "dir"],
  ["inspect"],
  ["verify", "a", "b"],
  ["verify", "a", "--payloads"],
  ["verify", "a", "--to", "b"],
  ["repair", "a"],
  ["inspect", "a", "--limit", "many"],
  ["inspect", "a", "--unknown"],
])("%j is not understood: exit code 2, with the usage", async (...args) => {
  const { code, printed, errors } = await runWal(args as string[]);
  expect([code, printed]).toEqual([2, ""]);
  expect(errors).toContain("Usage: longjobs-wal");
});
