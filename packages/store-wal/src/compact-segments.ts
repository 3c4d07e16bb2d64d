import { setImmediate as nextTurn } from "node:timers/promises";
import { flushDirectory, type FileLayer } from "./file-layer.ts";
import { LogSegment, segmentKey } from "./log-segment.ts";
import type { LogWriter } from "./log-writer.ts";
import { pickSegment } from "./pick-segment.ts";
import type { RelocateFrames } from "./relocate-frames.ts";
import { frameKinds } from "./frame-format.ts";
import { hashId, isSameHash } from "./hash-id.ts";
import { scanSegment, type ScannedFrame } from "./scan-segment.ts";
import type { SegmentFiles } from "./segment-files.ts";
import { needsSegment, type TaskIndex } from "./task-index.ts";
import { decodeTombstone } from "./tombstone.ts";
import { walErrors } from "./wal-errors.ts";

export interface CompactorParts {
  readonly files: FileLayer;
  readonly dir: string;
  readonly floorBytes: number;
  readonly segments: Map<number, LogSegment>;
  readonly open: SegmentFiles;
  readonly index: TaskIndex;
  readonly writer: LogWriter;
  readonly relocate: RelocateFrames;
  /** Goes on in a new file. */
  rotate(): Promise<void>;
  isTakenOver(): boolean;
  onError(error: unknown): void;
}

/** Read and copied between two turns of the event loop. */
const SLICE_BYTES = 256 * 1024;
const SLICE_TASKS = 256;

/**
 * Gives back the space of superseded frames. One segment at a time: what is still needed in it is appended to
 * the log like any write, with its old sequence number, and when all of that is durable the file is deleted.
 * A crash at any point leaves a log with some frames twice.
 */
export class Compactor {
  readonly #parts: CompactorParts;
  #running: Promise<void> | undefined;
  #isStopped = false;
  /** Garbage that the last run could not remove. */
  #leftoverBytes = 0;

  constructor(parts: CompactorParts) {
    this.#parts = parts;
  }

  /** Starts a run in the background when there is enough to gain. Cheap: called after every batch. */
  consider(): void {
    if (this.#running !== undefined || this.#isStopped || !this.#isDue()) return;
    this.#running = this.#run()
      .catch((error: unknown) => this.#parts.onError(walErrors.unavailable("compact", error)))
      .finally(() => {
        this.#leftoverBytes = this.#sizes().garbage;
        this.#running = undefined;
      });
  }

  /** Ends after the slice at hand. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Resolves when no run is under way. */
  async whenIdle(): Promise<void> {
    await this.#running;
  }

  #isDue(): boolean {
    const { live, garbage } = this.#sizes();
    const { floorBytes, writer } = this.#parts;
    // On a full disk every byte counts, and the reserve is there to be spent on this.
    if (writer.isOnReserve) return garbage > this.#leftoverBytes;
    return garbage >= Math.max(live, floorBytes) && garbage >= this.#leftoverBytes + floorBytes;
  }

  #sizes(): { live: number; garbage: number } {
    let live = 0;
    let garbage = 0;
    for (const segment of this.#parts.segments.values()) {
      live += segment.liveBytes;
      garbage += segment.garbageBytes;
    }
    return { live, garbage };
  }

  async #run(): Promise<void> {
    const tried = new Set<LogSegment>();
    while (!this.#isStopped) {
      const { segments, writer, floorBytes } = this.#parts;
      const { live, garbage } = this.#sizes();
      if (garbage * 2 < live && !writer.isOnReserve) return;
      const victim = pickSegment([...segments.values()], tried, writer, floorBytes);
      if (victim === undefined) return;
      tried.add(victim);
      if (victim === writer.active) await this.#parts.rotate();
      await this.#compact(victim);
    }
  }

  async #compact(victim: LogSegment): Promise<void> {
    const { open, segments, dir, files } = this.#parts;
    const copiedTo = new Set<LogSegment>();
    if (victim.liveBytes > 0 || this.#mayHoldTombstones(victim)) await this.#moveFrames(victim, copiedTo);
    if (this.#isStopped || victim.liveBytes > 0) return;
    // Durable first, deleted second. Without fsync this is the one place that flushes: an old task must not be
    // lost because it was moved a moment ago.
    for (const segment of copiedTo) await this.#flush(segment);
    if (copiedTo.size > 0) await flushDirectory(files, dir);
    if (this.#parts.isTakenOver()) return;
    await open.remove(victim);
    segments.delete(segmentKey(victim));
  }

  async #moveFrames(victim: LogSegment, copiedTo: Set<LogSegment>): Promise<void> {
    const { open, index, relocate } = this.#parts;
    const pending: (() => Promise<LogSegment | undefined>)[] = [];
    const work = async (): Promise<void> => {
      while (pending.length > 0 && !this.#isStopped) {
        const slice = pending.splice(0, SLICE_TASKS);
        for (const segment of await Promise.all(slice.map((move) => move()))) {
          if (segment !== undefined) copiedTo.add(segment);
        }
        await nextTurn();
      }
    };
    open.hold(victim);
    try {
      const file = await open.file(victim);
      await scanSegment(
        file,
        victim,
        { end: victim.validBytes, chunkBytes: SLICE_BYTES },
        {
          frame: (frame) => {
            const move = this.#moveOf(victim, frame);
            if (move !== undefined) pending.push(move);
          },
          damage: () => {}, // Whoever needs damaged bytes is found below, by what is left.
          pause: work,
        },
      );
      if (victim.liveBytes > 0 && !this.#isStopped) {
        for (const [taskId, entry] of index.named()) {
          if (needsSegment(entry, victim)) pending.push(() => relocate.task(taskId, victim));
        }
        for (const [, { damage }] of index.unnamed()) {
          if (damage?.segment === victim) pending.push(() => relocate.unnamed(damage, victim));
        }
        await work();
      }
    } finally {
      open.release(victim);
    }
  }

  #moveOf(
    victim: LogSegment,
    { header, meta, source, at, offset, bytes }: ScannedFrame,
  ): (() => Promise<LogSegment | undefined>) | undefined {
    const { index, relocate } = this.#parts;
    const { taskId } = meta;
    if (header.kind === frameKinds.tombstone) {
      const range = decodeTombstone(source, meta);
      return this.#isNeeded(range, victim) ? () => relocate.tombstone(taskId, header, range) : undefined;
    }
    if (taskId === "" && !isSameHash(header.idHash, hashId(""))) return undefined;
    const entry = index.get(taskId);
    if (entry === undefined || !needsSegment(entry, victim)) return undefined;
    if (entry.segment !== victim || entry.offset !== offset) return () => relocate.task(taskId, victim);
    // The window moves on: the frame is copied out of it, which spares reading it again.
    const scanned = { entry, bytes: Buffer.from(source.subarray(at, at + bytes)) };
    return () => relocate.task(taskId, victim, scanned);
  }

  /** A tombstone goes when no other segment is left that may hold an older frame of its task. */
  #isNeeded({ since, until }: { since: number; until: number }, victim: LogSegment): boolean {
    for (const [key, segment] of this.#parts.segments) {
      if (segment !== victim && key >= since && key <= until) return true;
    }
    return false;
  }

  #mayHoldTombstones(victim: LogSegment): boolean {
    return victim.garbageBytes > 0 && this.#parts.segments.size > 1;
  }

  async #flush(segment: LogSegment): Promise<void> {
    const { open } = this.#parts;
    open.hold(segment);
    try {
      await (await open.file(segment)).flush();
    } finally {
      open.release(segment);
    }
  }
}
