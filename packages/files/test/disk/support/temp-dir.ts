import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Another file system than that of {@link tempDir}, where the machine has one. */
export const otherDisk = existsSync("/dev/shm") ? "/dev/shm" : undefined;

/** A fresh directory for one test; kept when the test fails, for the person who looks. */
export function tempDir(parent: string = tmpdir()): string {
  const dir = realpathSync(mkdtempSync(join(parent, "files-")));
  onTestFinished(({ task }) => {
    if (task.result?.state !== "fail") rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}
