import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Memory, where the system has it: thousands of openings need no disk. */
const quickDir = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A fresh directory for a test that opens a log very often. */
export function quickTempDir(): string {
  return tempDir(quickDir);
}

/** A fresh directory for one test; kept when the test fails, for the person who looks. */
export function tempDir(root: string = tmpdir()): string {
  const dir = mkdtempSync(join(root, "store-wal-"));
  onTestFinished(({ task }) => {
    if (task.result?.state !== "fail") rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}
