import { dirname } from "node:path";
import { isLongJobsError, reportBackgroundError } from "@longjobs/core";
import { flushDirectory, isNoSpace, type FileLayer } from "./file-layer.ts";
import { lockDirectory, realWorld, type AcquiredLock } from "./lock-directory.ts";
import { LogEngine } from "./log-engine.ts";
import { resolveOptions, type ResolvedOptions, type WalTaskStoreOptions } from "./options.ts";
import { replayLog } from "./replay-log.ts";
import { compareSegments } from "./segment-header.ts";
import { walErrors } from "./wal-errors.ts";

/**
 * Locks a directory and reads its log. When it rejects, nothing is open; nothing is locked either, unless the disk
 * takes not even the mark that gives the lock back.
 */
export async function openLog(
  options: WalTaskStoreOptions,
): Promise<{ engine: LogEngine; resolved: ResolvedOptions; openTasks: ReadonlySet<string> }> {
  const resolved = resolveOptions(options);
  const { files, dir } = resolved;
  try {
    await makeDirectory(files, dir);
    // Ownership first: until then another process may be writing to any of these files.
    const acquired = await lockDirectory(files, dir, realWorld());
    try {
      return { ...(await startEngine(resolved, acquired)), resolved };
    } catch (error) {
      await release(acquired);
      throw error;
    }
  } catch (error) {
    if (isLongJobsError(error)) throw error;
    if (isNoSpace(error)) throw walErrors.noSpace(dir, error);
    throw walErrors.unavailable(`be opened in ${dir}`, error);
  }
}

async function startEngine(
  resolved: ResolvedOptions,
  { lock, cleanEnds }: AcquiredLock,
): Promise<{
  engine: LogEngine;
  openTasks: ReadonlySet<string>;
}> {
  // Before the log is read: that may take longer than others wait for a sign of life.
  lock.startHeartbeat((error) =>
    reportBackgroundError(walErrors.unavailable("show that its owner lives", error), resolved.onError),
  );
  const log = await replayLog(resolved.files, resolved.dir, cleanEnds);
  const engine = new LogEngine(resolved, lock, log);
  try {
    await engine.settle(log);
    return { engine, openTasks: log.openTasks };
  } catch (error) {
    await engine.abandon();
    throw error;
  }
}

/** What is known about the end of the log must survive an opening that failed. */
async function release({ lock, cleanEnds }: AcquiredLock): Promise<void> {
  const end = cleanEnds
    .toSorted((left, right) => compareSegments(left, right) || left.sequence - right.sequence)
    .at(-1);
  await lock.close(end).catch(() => {}); // Then this process holds it until it ends; the error that matters is the other.
}

/** A new directory is durable only when its parent knows its name. */
async function makeDirectory(files: FileLayer, dir: string): Promise<void> {
  const first = await files.makeDirectory(dir);
  if (first === undefined) return;
  for (let made = dir; ; made = dirname(made)) {
    await flushDirectory(files, dirname(made));
    if (made === first || dirname(made) === made) return;
  }
}
