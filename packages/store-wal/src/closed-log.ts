import { isLongJobsError } from "@longjobs/core";
import { join } from "node:path";
import { errnoOf, type FileLayer } from "./file-layer.ts";
import { isStillFree, readOwnership, type FoundOwnership, type LockWorld } from "./lock-directory.ts";
import { readOnlyFiles } from "./read-only-files.ts";
import { RecordReader } from "./read-record.ts";
import { replayLog, type ReplayedLog } from "./replay-log.ts";
import { SegmentFiles } from "./segment-files.ts";
import { parseSegmentName } from "./segment-header.ts";
import { walErrors } from "./wal-errors.ts";

/** How far a long reading has come. */
export interface Progress {
  readonly unit: "bytes" | "tasks";
  readonly done: number;
  readonly total: number;
}

export interface ClosedLogOptions {
  readonly dir: string;
  readonly files: FileLayer;
  readonly world: LockWorld;
  readonly onProgress: (progress: Progress) => void;
}

/** There is nothing at a path that could be a log. */
export class NotALogError extends Error {
  override readonly name = "NotALogError";
}

/**
 * A log without an owner, closed or left behind by a crash, opened to look at. Nothing is written, locked or
 * healed. So that what is seen is one state of the log, a directory with an owner is refused before the
 * reading, and {@link assertUnowned} refuses one that got an owner meanwhile.
 */
export class ClosedLog {
  readonly dir: string;
  readonly replayed: ReplayedLog;
  readonly ownership: FoundOwnership;
  /** Bytes of each file of the log, by name. */
  readonly sizes: ReadonlyMap<string, number>;
  readonly files: FileLayer;
  readonly reader: RecordReader;
  readonly #world: LockWorld;
  readonly #open: SegmentFiles;

  private constructor(
    { dir, world }: ClosedLogOptions,
    found: Pick<ClosedLog, "replayed" | "ownership" | "sizes" | "files">,
  ) {
    this.dir = dir;
    this.replayed = found.replayed;
    this.ownership = found.ownership;
    this.sizes = found.sizes;
    this.files = found.files;
    this.#world = world;
    this.#open = new SegmentFiles(found.files, dir);
    this.reader = new RecordReader(this.#open, found.replayed.segments);
  }

  /** @throws LongJobsError `store_locked`, `schema_too_new`, `store_unavailable`; NotALogError */
  static async open(options: ClosedLogOptions): Promise<ClosedLog> {
    const { dir, world, onProgress } = options;
    let done = 0;
    let total = 0;
    const files = readOnlyFiles(options.files, (bytes) => {
      done += bytes;
      onProgress({ unit: "bytes", done: Math.min(done, total), total });
    });
    await assertLog(files, dir);
    const ownership = await readable(dir, () => readOwnership(files, dir, world));
    try {
      const sizes = await readSizes(files, dir);
      for (const bytes of sizes.values()) total += bytes;
      done = 0;
      const replayed = await replayLog(files, dir, ownership.cleanEnds);
      const log = new ClosedLog(options, { replayed, ownership, sizes, files });
      await log.assertUnowned();
      return log;
    } catch (error) {
      // A file that vanished, or frames that made no sense, may be the work of a new owner: say that first.
      await assertSameOwner(files, dir, world, ownership);
      throw asUnavailable(dir, error);
    }
  }

  /** Call it after the last reading, before anybody is told. @throws LongJobsError `store_locked` */
  async assertUnowned(): Promise<void> {
    await assertSameOwner(this.files, this.dir, this.#world, this.ownership);
  }

  async close(): Promise<void> {
    await this.#open.closeAll();
  }
}

async function assertLog(files: FileLayer, dir: string): Promise<void> {
  const names = await files.list(dir).catch((error: unknown) => {
    const errno = errnoOf(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") throw new NotALogError(`${dir} is not a directory.`);
    throw walErrors.unavailable(`be read in ${dir}`, error);
  });
  if (!names.some((name) => /^lock\.\d+$/.test(name) || parseSegmentName(name) !== undefined))
    throw new NotALogError(`${dir} has no log in it.`);
}

async function readSizes(files: FileLayer, dir: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for (const name of (await files.list(dir)).toSorted()) {
    if (parseSegmentName(name) === undefined) continue;
    const file = await files.open(join(dir, name), "r");
    try {
      sizes.set(name, await file.size());
    } finally {
      await file.close();
    }
  }
  return sizes;
}

async function assertSameOwner(
  files: FileLayer,
  dir: string,
  world: LockWorld,
  found: FoundOwnership,
): Promise<void> {
  if (await readable(dir, () => isStillFree(files, dir, found))) return;
  // Names the holder, if it is still there.
  await readable(dir, () => readOwnership(files, dir, world));
  throw walErrors.takenOver(dir);
}

async function readable<T>(dir: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw asUnavailable(dir, error);
  }
}

function asUnavailable(dir: string, error: unknown): unknown {
  return isLongJobsError(error) ? error : walErrors.unavailable(`be read in ${dir}`, error);
}
