import { type ErrorListener, reportBackgroundError } from "@longjobs/core";
import { type DiskFiles, errnoOf, ifExists } from "./disk-files.ts";
import type { OpenDirectory } from "./open-directory.ts";
import type { Root } from "./root.ts";
import { isTemporaryName } from "./temporary-name.ts";

/** Options of a sweep. */
export interface SweepOptions {
  /**
   * A copy that was written to more recently may still be going on, in another process. Copies are flushed often
   * enough to be written to every few seconds. @default 60_000
   */
  readonly olderThanMs?: number;
  /** Gets the error of a directory that cannot be swept; the others are. Without it, the global `reportError`. */
  readonly onError?: ErrorListener;
}

/** What a sweep found. */
export interface SweepResult {
  readonly removed: number;
  /** Those that may still be in use. */
  readonly young: number;
}

/** Removes the temporary files under a root, following no link. */
export async function sweepRoot(
  files: DiskFiles,
  root: Root,
  { olderThanMs = 60_000, onError }: SweepOptions,
): Promise<SweepResult> {
  const result = { removed: 0, young: 0 };
  const writtenBefore = Date.now() - olderThanMs;
  await sweep(await root.open(files));
  return result;

  async function sweep(opened: OpenDirectory): Promise<void> {
    await using directory = opened;
    for await (const entry of await files.opendir(directory.entry("."))) {
      try {
        if (entry.isDirectory()) await sweep(await directory.openChild(entry.name));
        else if (entry.isFile() && isTemporaryName(entry.name)) await remove(directory.entry(entry.name));
      } catch (error) {
        // It was removed or replaced since it was listed: nothing is left to sweep.
        if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? ""))
          reportBackgroundError(error, onError);
      }
    }
  }

  async function remove(path: string): Promise<void> {
    const stats = await ifExists(files.lstat(path));
    if (stats === undefined) return;
    if (stats.mtimeMs > writtenBefore) {
      result.young += 1;
      return;
    }
    await ifExists(files.unlink(path));
    result.removed += 1;
  }
}
