import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { errnoOf, flushDirectory, readFully, writeFully, type FileLayer } from "./file-layer.ts";
import { DirectoryLock } from "./directory-lock.ts";
import {
  decodeLock,
  encodeLock,
  LOCK_BYTES,
  isEpoch,
  lockName,
  parseLockName,
  type LockContent,
} from "./lock-file.ts";
import { identifyProcess, probeProcess, type Liveness, type ProcessIdentity } from "./process-identity.ts";
import type { CleanEnd } from "./replay-log.ts";
import { parseSegmentName } from "./segment-header.ts";
import { walErrors } from "./wal-errors.ts";

/** A holder that cannot be looked at is dead when its counter stood still this long. It counts every 2 s. */
const STALE_AFTER_MS = 10_000;
const LOOK_EVERY_MS = 250;

/**
 * Locks this many epochs back are removed: nobody who read them can still be on the way to take over, and an owner
 * that finds its own missing knows that it is none.
 */
const KEPT_EPOCHS = 8;

/** A lost race starts over; a directory cannot change owners this often while somebody tries once. */
const MAX_ROUNDS = 100;

/** What locking needs from the world; tests bring their own clock and processes. */
export interface LockWorld {
  readonly self: ProcessIdentity;
  probe(holder: ProcessIdentity): Liveness;
  monotonicMs(): number;
  wait(ms: number): Promise<void>;
}

export function realWorld(): LockWorld {
  const self = identifyProcess();
  return {
    self,
    probe: (holder) => probeProcess(holder, self),
    monotonicMs: () => performance.now(),
    wait: (ms) => new Promise((resume) => setTimeout(resume, ms)),
  };
}

/** The directory is ours, and this is how earlier owners left it. */
export interface AcquiredLock {
  readonly lock: DirectoryLock;
  readonly cleanEnds: readonly CleanEnd[];
}

/**
 * Makes this process the one owner of a directory. Each ownership is an epoch, and each epoch a file that
 * only one process can make; an epoch never comes twice. A takeover makes the next epoch's file.
 *
 * @throws LongJobsError `store_locked` with the holder, when somebody alive owns the directory.
 */
export async function lockDirectory(files: FileLayer, dir: string, world: LockWorld): Promise<AcquiredLock> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const names = await files.list(dir);
    const epochs = names.map(parseLockName).filter((epoch) => epoch !== undefined);
    const current = Math.max(0, ...epochs);
    if (current > 0 && !(await isFree(files, dir, current, world))) continue;
    // Segments remember epochs as well, should somebody have deleted the lock files.
    const written = names.map((name) => parseSegmentName(name)?.epoch ?? 0).filter(isEpoch);
    const epoch = Math.max(current, ...written) + 1;
    if (!isEpoch(epoch)) throw walErrors.unavailable("be opened once more", undefined);
    const content: LockContent = {
      state: "held",
      holder: world.self,
      dir,
      nonce: randomBytes(12).toString("hex"),
      since: new Date().toISOString(),
      counter: 0,
    };
    if (!(await makeLock(files, dir, epoch, content))) continue;
    const path = join(dir, lockName(epoch));
    try {
      // Whoever decided on an old view of the directory made an old epoch: the newer one is the owner.
      if ((await files.list(dir)).some((name) => (parseLockName(name) ?? 0) > epoch)) {
        await files.unlink(path);
        continue;
      }
      const cleanEnds = await readCleanEnds(files, dir, epochs);
      const file = await files.open(path, "r+");
      await removeOld(files, dir, epoch).catch(() => {}); // What cannot be removed now is in nobody's way.
      return { lock: new DirectoryLock({ files, dir, epoch, file, content }), cleanEnds };
    } catch (error) {
      await files.unlink(path).catch(() => {}); // An owner that failed to become one must not keep others out.
      throw error;
    }
  }
  throw walErrors.unavailable("lock its directory: others keep taking it", undefined);
}

/** How a directory that nobody owns was left. */
export interface FoundOwnership {
  /** 0 where the directory was never locked. */
  readonly epoch: number;
  /** The last owner; absent where the directory was never locked, or its lock is torn. */
  readonly owner: LockContent | undefined;
  readonly cleanEnds: readonly CleanEnd[];
}

/**
 * Makes sure that nobody owns a directory, and changes nothing: for somebody who only reads. An owner may come
 * later, so ask {@link isStillFree} after reading.
 *
 * @throws LongJobsError `store_locked` with the holder, when somebody alive owns the directory.
 */
export async function readOwnership(
  files: FileLayer,
  dir: string,
  world: LockWorld,
): Promise<FoundOwnership> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const epochs = (await files.list(dir)).map(parseLockName).filter((epoch) => epoch !== undefined);
    const epoch = Math.max(0, ...epochs);
    if (epoch > 0 && !(await isFree(files, dir, epoch, world))) continue;
    const content = epoch === 0 ? undefined : await readLock(files, join(dir, lockName(epoch)));
    const owner = typeof content === "object" ? content : undefined;
    return { epoch, owner, cleanEnds: await readCleanEnds(files, dir, epochs) };
  }
  throw walErrors.unavailable("be read: others keep taking its directory", undefined);
}

/** Whether nobody has come since, and the last owner has given no sign of life. Never waits for one. */
export async function isStillFree(files: FileLayer, dir: string, found: FoundOwnership): Promise<boolean> {
  const epochs = (await files.list(dir)).map(parseLockName).filter((epoch) => epoch !== undefined);
  if (Math.max(0, ...epochs) !== found.epoch) return false;
  if (found.owner === undefined) return true;
  const now = await readLock(files, join(dir, lockName(found.epoch)));
  return typeof now === "object" && now.counter === found.owner.counter;
}

/** Whether the lock of an epoch binds nobody any more. @throws LongJobsError `store_locked` when it does. */
async function isFree(files: FileLayer, dir: string, epoch: number, world: LockWorld): Promise<boolean> {
  const path = join(dir, lockName(epoch));
  let seen = await readLock(files, path);
  let standsStillSinceMs = world.monotonicMs();
  for (;;) {
    if (seen === "gone") return false;
    const liveness =
      seen === "torn" ? "unknown" : seen.state === "closed" ? "dead" : world.probe(seen.holder);
    if (liveness === "dead") return true;
    if (liveness === "alive" && seen !== "torn") {
      if (await isCopy(files, path, epoch, seen)) return true;
      throw lockedBy(dir, seen);
    }
    if (world.monotonicMs() - standsStillSinceMs >= STALE_AFTER_MS) return true;
    await world.wait(LOOK_EVERY_MS);
    const now = await readLock(files, path);
    if (now !== "gone" && now !== "torn" && seen !== "torn" && now.counter !== seen.counter)
      throw lockedBy(dir, now);
    if (now === "torn" && seen !== "torn") continue; // In the middle of a heartbeat, or of a bad disk: look again.
    if (seen === "torn" && now !== "torn") standsStillSinceMs = world.monotonicMs();
    seen = now;
  }
}

/**
 * Whether a lock came here with a copy of its directory, such as a backup of a running store: the holder's own
 * directory has the same lock, and it is another file. Anything less certain counts as held.
 */
async function isCopy(files: FileLayer, path: string, epoch: number, seen: LockContent): Promise<boolean> {
  if (seen.dir === "") return false;
  const original = join(seen.dir, lockName(epoch));
  if (original === path) return false;
  const found = await readLock(files, original).catch(() => "gone" as const);
  if (typeof found === "string" || found.nonce !== seen.nonce) return false;
  return (await identityOf(files, original)) !== (await identityOf(files, path));
}

async function identityOf(files: FileLayer, path: string): Promise<string> {
  const file = await files.open(path, "r");
  try {
    return await file.identity();
  } finally {
    await file.close();
  }
}

function lockedBy(dir: string, { holder, since }: LockContent): Error {
  return walErrors.locked(dir, { pid: holder.pid, host: holder.host, since });
}

async function readLock(files: FileLayer, path: string): Promise<LockContent | "torn" | "gone"> {
  try {
    const file = await files.open(path, "r");
    try {
      const block = Buffer.alloc(LOCK_BYTES);
      const count = await readFully(file, block, LOCK_BYTES, 0);
      return decodeLock(block.subarray(0, count)) ?? "torn";
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return "gone";
    throw error;
  }
}

/** Errors of a file system that has no hard links. */
const linkless = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Makes the lock of an epoch, whole. Resolves to whether this process was the one that made it. */
async function makeLock(
  files: FileLayer,
  dir: string,
  epoch: number,
  content: LockContent,
): Promise<boolean> {
  const path = join(dir, lockName(epoch));
  if (!(await placeLock(files, dir, path, content))) return false;
  try {
    await flushDirectory(files, dir);
    return true;
  } catch (error) {
    // An owner that failed to become one must not keep others out.
    await files.unlink(path).catch(() => {});
    throw error;
  }
}

/** Links a complete file to the name: nobody ever sees half a lock. */
async function placeLock(
  files: FileLayer,
  dir: string,
  path: string,
  content: LockContent,
): Promise<boolean> {
  const draft = join(dir, `lock-draft-${content.holder.pid}-${randomBytes(6).toString("hex")}`);
  await writeLock(files, draft, content);
  try {
    await files.link(draft, path);
    return true;
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    // ENOENT: an owner cleaned our draft away.
    if (errno === "EEXIST" || errno === "ENOENT") return false;
    if (!linkless.has(errno)) throw error;
    return await placeLockWithoutLinks(files, path, content);
  } finally {
    await files.unlink(draft).catch(() => {}); // A draft left behind is removed by a later owner.
  }
}

/** Without hard links the exclusive creation decides, and readers wait until the file is whole. */
async function placeLockWithoutLinks(files: FileLayer, path: string, content: LockContent): Promise<boolean> {
  try {
    await writeLock(files, path, content);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function writeLock(files: FileLayer, path: string, content: LockContent): Promise<void> {
  const file = await files.open(path, "wx+");
  try {
    await writeFully(file, encodeLock(content), 0);
    await file.flush();
  } catch (error) {
    await files.unlink(path).catch(() => {}); // Half a lock would keep others waiting.
    throw error;
  } finally {
    await file.close();
  }
}

/** How every earlier owner that closed its store left the log. */
async function readCleanEnds(files: FileLayer, dir: string, epochs: readonly number[]): Promise<CleanEnd[]> {
  const ends: CleanEnd[] = [];
  for (const epoch of epochs) {
    const content = await readLock(files, join(dir, lockName(epoch)));
    if (typeof content === "object" && content.end !== undefined) ends.push(content.end);
  }
  return ends;
}

async function removeOld(files: FileLayer, dir: string, epoch: number): Promise<void> {
  for (const name of await files.list(dir)) {
    const isOldLock = (parseLockName(name) ?? epoch) <= epoch - KEPT_EPOCHS;
    if (!isOldLock && !name.startsWith("lock-draft-")) continue;
    // What cannot be removed now is in nobody's way.
    await files.unlink(join(dir, name)).catch(() => {});
  }
}
