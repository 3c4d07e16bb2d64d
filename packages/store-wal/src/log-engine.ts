import { join } from "node:path";
import { reportBackgroundError } from "@longjobs/core";
import { AppendQueue } from "./append-queue.ts";
import { Compactor } from "./compact-segments.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import { encodeId } from "./encode-id.ts";
import type { IdHash } from "./hash-id.ts";
import { LogWriter } from "./log-writer.ts";
import type { BlobRef, Damage, LogSegment } from "./log-segment.ts";
import { segmentKey } from "./log-segment.ts";
import type { ResolvedOptions } from "./options.ts";
import { Quarantine } from "./quarantine.ts";
import { DamagedBytesError, RecordReader } from "./read-record.ts";
import { RecordCache } from "./record-cache.ts";
import { RelocateFrames } from "./relocate-frames.ts";
import type { CleanEnd, ReplayedLog } from "./replay-log.ts";
import { ReserveFile } from "./reserve-file.ts";
import { SegmentFiles } from "./segment-files.ts";
import type { TaskEntry, TaskIndex } from "./task-index.ts";
import { TaskLanes } from "./task-lanes.ts";
import { draftTombstone } from "./tombstone.ts";
import { UnflushedSegments } from "./unflushed-segments.ts";
import { walErrors } from "./wal-errors.ts";
import type { WalStats } from "./wal-stats.ts";

/** What the housekeeping asks of the store above it. */
export interface EngineHooks {
  removeExpired(taskId: string, entry: TaskEntry): Promise<void>;
  sweepExpired(): Promise<void>;
}

/**
 * The parts of an open log, wired together: what is written goes through the queue, what is read through the
 * reader, and after every batch the housekeeping looks whether it is due.
 */
export class LogEngine {
  readonly index: TaskIndex;
  readonly cache: RecordCache;
  readonly lanes: TaskLanes = new TaskLanes();
  readonly queue: AppendQueue;
  readonly reader: RecordReader;
  readonly #options: ResolvedOptions;
  readonly #segments: ReadonlyMap<number, LogSegment>;
  readonly #lock: DirectoryLock;
  readonly #open: SegmentFiles;
  readonly #writer: LogWriter;
  readonly #quarantine: Quarantine;
  readonly #relocate: RelocateFrames;
  readonly #unflushed: UnflushedSegments;
  readonly #compactor: Compactor;
  readonly #background = new Set<Promise<void>>();
  #hooks: EngineHooks | undefined;
  #sweptAt: LogSegment | undefined;
  #lost: Error | undefined;

  constructor(options: ResolvedOptions, lock: DirectoryLock, log: ReplayedLog) {
    const { dir, files, fsync, segmentBytes, randomUint32, reserveBytes } = options;
    const isTakenOver = (): boolean => lock.isTakenOver();
    const onError = (error: unknown): void => this.report(error);
    this.#options = options;
    this.#segments = log.segments;
    this.#lock = lock;
    this.index = log.index;
    this.cache = new RecordCache(options.cacheBytes);
    this.#open = new SegmentFiles(files, dir);
    this.reader = new RecordReader(this.#open, log.segments);
    this.#quarantine = new Quarantine(files, this.reader, dir);
    const reserve = reserveBytes === null ? undefined : new ReserveFile(files, dir, reserveBytes);
    this.#writer = new LogWriter({
      files,
      dir,
      fsync,
      segmentBytes,
      randomUint32,
      reserve,
      isTakenOver,
      epoch: lock.epoch,
      nextSequence: log.nextSequence,
      last: log.last,
      segments: log.segments,
      open: this.#open,
    });
    this.#unflushed = new UnflushedSegments(files, dir, this.#open, log.unflushed);
    this.queue = new AppendQueue({
      writer: this.#writer,
      files,
      dir,
      reserve,
      onError,
      onWritten: fsync ? () => {} : (segment) => this.#unflushed.wrote(segment),
      onSettled: () => this.#considerHousekeeping(),
      onTakenOver: () => this.#lose(),
      monotonicMs: () => performance.now(),
    });
    const { cache, index, lanes, queue, reader } = this;
    this.#relocate = new RelocateFrames({
      index,
      cache,
      lanes,
      queue,
      reader,
      quarantine: this.#quarantine,
      now: options.now,
      removeExpired: (taskId, entry) => this.#hooks?.removeExpired(taskId, entry) ?? Promise.resolve(),
      markDamaged: (taskId, entry, error) => this.markDamaged(taskId, entry, error),
    });
    this.#compactor = new Compactor({
      files,
      dir,
      floorBytes: options.compactionFloorBytes,
      segments: log.segments,
      open: this.#open,
      index,
      reader,
      writer: this.#writer,
      relocate: this.#relocate,
      unflushed: this.#unflushed,
      now: options.now,
      rotate: () => queue.rotate(),
      isTakenOver,
      onError,
    });
  }

  /** Set when another process owns the directory: nothing that is read here can be trusted any more. */
  get lost(): Error | undefined {
    return this.#lost;
  }

  /** Sums over the files of the log, which are few; nothing is read. */
  stats(): WalStats {
    let liveBytes = 0;
    let garbageBytes = 0;
    for (const segment of this.#segments.values()) {
      liveBytes += segment.liveBytes;
      garbageBytes += segment.garbageBytes;
    }
    const { flushes, records } = this.queue.counts;
    return {
      tasks: this.index.size,
      liveBytes,
      garbageBytes,
      segments: this.#segments.size,
      flushes,
      records,
      recordsPerFlush: flushes === 0 ? 0 : records / flushes,
      lastCompaction: this.#compactor.last,
    };
  }

  /** Begins the housekeeping: what an opening still has to write comes before it. */
  start(hooks: EngineHooks): void {
    this.#hooks = hooks;
    this.#lock.whenTakenOver(() => this.#lose());
    this.#compactor.consider();
  }

  /**
   * Ends what an opening has to write. What a killed owner left is flushed first: from now on it is shown and referred to,
   * and replaces what compaction deletes. Then damage is told about and its bytes are kept, and states that a torn
   * write follows are repeated.
   */
  async settle({ verdict }: ReplayedLog): Promise<void> {
    if (this.#options.fsync) await this.#unflushed.flush();
    for (const { taskId, damage } of verdict.hurt) {
      const { idHash } = damage;
      const hash =
        idHash === undefined
          ? ""
          : ` with the id hash ${idHash.high.toString(16)}:${idHash.low.toString(16)}`;
      await this.reportDamage(taskId === undefined ? `A task${hash}` : `Task ${taskId}`, damage);
    }
    for (const damage of verdict.nobodys)
      await this.reportDamage("A part of the log that no task could be found for", damage);
    // At once, so that they share a flush; nothing of it goes on when the opening has failed.
    const settled = await Promise.allSettled(
      verdict.unended.map(({ taskId, idHash, damage }) =>
        taskId === undefined ? this.#appendVoid(idHash, damage.segment, true) : this.#relocate.renew(taskId),
      ),
    );
    for (const outcome of settled) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** Reports damage, with where its bytes are kept. */
  async reportDamage(subject: string, damage: Pick<BlobRef, "segment" | "offset" | "bytes">): Promise<void> {
    const work = this.#keepAside(damage).then((kept) => {
      this.report(walErrors.corrupt(subject, `${damage.segment.name} at ${damage.offset}`, kept));
    });
    this.#background.add(work);
    await work;
    this.#background.delete(work);
  }

  /** From now on the task is refused, until it expires or is written whole. Reported once. */
  markDamaged(taskId: string, entry: TaskEntry, error: unknown): Damage {
    const { segment, offset, bytes } = error instanceof DamagedBytesError ? error.place : entry;
    const { sequence, bornAtMs, ttlMs } = entry;
    const damage = {
      segment,
      offset,
      bytes,
      idHash: undefined,
      taskId,
      sequence,
      bornAtMs,
      ttlMs,
      torn: false,
      isMarker: false,
    };
    if (this.index.get(taskId) !== entry) return damage;
    this.index.set(taskId, { ...entry, damage });
    this.cache.delete(taskId);
    void this.reportDamage(`Task ${taskId}`, damage);
    return damage;
  }

  report(error: unknown): void {
    reportBackgroundError(error, this.#options.onError);
  }

  /** Writes the deletion of a task whose lane the caller has. */
  async appendTombstone(taskId: string, entry: TaskEntry, onGone: () => void): Promise<void> {
    const { bornAtMs, ttlMs, sinceSegment, segment } = entry;
    const draft = draftTombstone(
      { id: encodeId(taskId), bornAtMs, ttlMs },
      { since: sinceSegment, until: segmentKey(segment) },
    );
    await this.queue.append({ draft, rank: "housekeeping", onDurable: onGone });
  }

  /** Deletes an expired task that is known only by the hash of its id; resolves to how many that were. */
  async removeUnnamed(idHash: IdHash): Promise<number> {
    const entry = this.index.getUnnamed(idHash);
    if (entry === undefined) return 0;
    await this.#appendVoid(idHash, entry.segment, false);
    this.index.deleteUnnamed(idHash);
    return 1;
  }

  /**
   * Ends everything and gives the directory up, with where the log ends. Errors are reported; every file is closed
   * whatever happens.
   */
  async close(): Promise<void> {
    await this.#finish();
    const end = await this.#cleanEnd();
    await this.#closeFiles();
    try {
      await this.#lock.close(end);
    } catch (error) {
      this.report(walErrors.unavailable("release its lock", error));
    }
    this.cache.clear();
  }

  /** Ends everything and leaves the lock as it is: for an opening that failed. */
  async abandon(): Promise<void> {
    await this.#finish();
    await this.#closeFiles();
  }

  /** Nothing is written or read any more when this resolves. */
  async #finish(): Promise<void> {
    await this.#compactor.stop();
    await this.queue.drain();
    await Promise.all(this.#background);
  }

  async #closeFiles(): Promise<void> {
    for (const error of await this.#open.closeAll())
      this.report(walErrors.unavailable("close a file", error));
  }

  /** Where the log ends; `undefined` when nobody can vouch for it. */
  async #cleanEnd(): Promise<CleanEnd | undefined> {
    const { last } = this.#writer;
    if (last === undefined || this.#lost !== undefined) return undefined;
    try {
      await this.#unflushed.flush();
    } catch (error) {
      this.report(walErrors.unavailable("make its last writes durable", error));
      return undefined;
    }
    const { epoch, number, validBytes } = last;
    return { epoch, number, validBytes, sequence: this.#writer.durableSequence };
  }

  async #appendVoid(idHash: IdHash, segment: LogSegment, isSettling: boolean): Promise<void> {
    const key = segmentKey(segment);
    const draft = draftTombstone(
      { id: { ...encodeId(""), hash: idHash }, bornAtMs: 0, ttlMs: null },
      { since: key, until: key },
      { isSettling },
    );
    await this.queue.append({ draft, rank: "housekeeping", onDurable: () => {} });
  }

  async #keepAside(damage: Pick<BlobRef, "segment" | "offset" | "bytes">): Promise<string | undefined> {
    try {
      return await this.#quarantine.keep(damage);
    } catch (error) {
      this.report(
        walErrors.unavailable(`keep damaged bytes in ${join(this.#options.dir, "quarantine")}`, error),
      );
      return undefined;
    }
  }

  /** A task that nobody asks for any more must not keep its space: each new segment is a moment to look. */
  #considerHousekeeping(): void {
    if (this.#hooks === undefined) return;
    const { active } = this.#writer;
    if (active !== undefined && active !== this.#sweptAt) {
      const isFirst = this.#sweptAt === undefined;
      this.#sweptAt = active;
      const sweep = isFirst ? undefined : this.#hooks.sweepExpired();
      if (sweep !== undefined) void sweep.then(() => this.#compactor.consider());
    }
    this.#compactor.consider();
  }

  #lose(): void {
    if (this.#lost !== undefined) return;
    this.#lost = walErrors.takenOver(this.#options.dir);
    this.queue.stop(this.#lost);
    void this.#compactor.stop();
    this.report(this.#lost);
  }
}
