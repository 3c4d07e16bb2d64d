/*
 * Writes the tables of docs/reference/clients.md and docs/reference/access.md from what their tests find: every client against the one
 * server, and every caller at every entry point. With --check nothing is written, and a difference fails, as it does among all
 * tests.
 */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const write = process.argv.includes("--check") ? {} : { LONGJOBS_WRITE_PAGES: "1" };
const { status } = spawnSync(
  "vitest",
  ["run", "--project", "tasks", "test/clients/clients.test", "test/access/access.test"],
  {
    cwd: root,
    env: { ...process.env, ...write },
    stdio: "inherit",
  },
);
process.exitCode = status ?? 1;
