import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A fresh directory for one test; kept when the test fails, for the person who looks. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "store-wal-"));
  onTestFinished(({ task }) => {
    if (task.result?.state !== "fail") rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}
