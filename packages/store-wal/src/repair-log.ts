import { randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { ClosedLog, type ClosedLogOptions } from "./closed-log.ts";
import { draftImage } from "./draft-frame.ts";
import { encodeId } from "./encode-id.ts";
import { Examination, type ExaminedTask } from "./examine-log.ts";
import { flushDirectory, persist } from "./file-layer.ts";
import type { LogEngine } from "./log-engine.ts";
import { segmentKey } from "./log-segment.ts";
import { openLog } from "./open-log.ts";
import { entryOfFrame } from "./place-frame.ts";
import { encodeFields } from "./task-fields.ts";
import type { TaskEntry } from "./task-index.ts";
import { walErrors } from "./wal-errors.ts";

/** Tasks on their way to the disk: they share flushes. */
const IN_FLIGHT = 256;
const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/** The target of a repair is not a place for a new log. */
export class TargetError extends Error {
  override readonly name = "TargetError";
}

/**
 * Writes every healthy task of a log into a new one, with its version, birth and life. The old log stays as it
 * is. The new one is written and read back beside its place, and renamed into it at the end: under its name
 * there is never half a log.
 *
 * @throws TargetError for a target that exists, or that lies in the old log or around it.
 */
export async function repairLog(log: ClosedLog, to: string, options: ClosedLogOptions): Promise<Examination> {
  const { files, onProgress } = options;
  assertTarget(log.dir, to, files.exists(to));
  const draft = `${to}.repair-${randomBytes(4).toString("hex")}`;
  try {
    const examination = await Examination.begin(log);
    await copyTasks(examination.tasks(onProgress), draft, options);
    await assertCopied(log, examination.healthyTasks, { ...options, dir: draft });
    await log.assertUnowned();
    await persist(() => files.rename(draft, to));
    await flushDirectory(files, dirname(to));
    return examination;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

function assertTarget(dir: string, to: string, exists: boolean): void {
  const [from, target] = [realPath(dir), realPath(to)];
  if (isInside(from, target) || isInside(target, from))
    throw new TargetError(`${to} must lie beside ${dir}, not in or around it.`);
  if (exists) throw new TargetError(`${to} exists already; name a directory that does not.`);
}

function isInside(outer: string, inner: string): boolean {
  const path = relative(outer, inner);
  return path === "" || (!path.startsWith("..") && !isAbsolute(path));
}

/** Without symbolic links, as far as the path exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not there yet: its parent may be.
    return dirname(path) === path ? path : join(realPath(dirname(path)), basename(path));
  }
}

async function copyTasks(
  tasks: AsyncIterable<ExaminedTask>,
  dir: string,
  { files }: ClosedLogOptions,
): Promise<void> {
  const errors: unknown[] = [];
  const { engine } = await openLog({
    dir,
    files,
    reserveBytes: null,
    onError: (error) => errors.push(error),
  });
  try {
    let copies: Promise<void>[] = [];
    let bytes = 0;
    for await (const { taskId, entry, task } of tasks) {
      if (task?.record === undefined) continue;
      const { version, bornAtMs, ttlMs } = entry;
      copies.push(append(engine, { taskId, version, bornAtMs, ttlMs }, task.record));
      bytes += task.bytes;
      if (copies.length < IN_FLIGHT && bytes < IN_FLIGHT_BYTES) continue;
      await Promise.all(copies);
      copies = [];
      bytes = 0;
    }
    await Promise.all(copies);
  } finally {
    await engine.close();
  }
  // Nothing is left to housekeeping here: whatever it reports is a copy that cannot be relied on.
  if (errors.length > 0) throw walErrors.unavailable(`be written to ${dir}`, errors[0]);
}

/** A task as it was born, which `create` could not repeat: it would be born again. */
type Identity = Pick<TaskEntry, "version" | "bornAtMs" | "ttlMs"> & { readonly taskId: string };

function append(engine: LogEngine, task: Identity, record: TaskRecord): Promise<void> {
  const draft = draftImage({ ...task, id: encodeId(task.taskId) }, encodeFields(record));
  return engine.queue.append({
    draft,
    rank: "ordinary",
    onDurable: (placed) =>
      engine.index.set(task.taskId, entryOfFrame(draft, placed, segmentKey(placed.segment))),
  });
}

/** Reads the new log back as a store would. */
async function assertCopied(log: ClosedLog, expected: number, options: ClosedLogOptions): Promise<void> {
  const copy = await ClosedLog.open(options);
  try {
    const examination = await Examination.begin(copy);
    for await (const { taskId, entry } of examination.tasks(options.onProgress)) {
      const original = log.replayed.index.get(taskId);
      const isSame =
        original?.version === entry.version &&
        original.bornAtMs === entry.bornAtMs &&
        original.ttlMs === entry.ttlMs;
      if (!isSame) throw notAsWritten(options.dir);
    }
    if (examination.damage.length > 0 || examination.healthyTasks !== expected)
      throw notAsWritten(options.dir);
  } finally {
    await copy.close();
  }
}

function notAsWritten(dir: string): Error {
  return walErrors.unavailable(`be repaired: what was written to ${dir} does not read back`, undefined);
}
