import { canForget, type ForgetParts } from "./forget-segment.ts";
import { type LogSegment, segmentKey } from "./log-segment.ts";
import type { LogWriter } from "./log-writer.ts";
import { moveSegment } from "./move-segment.ts";
import { pickSegment } from "./pick-segment.ts";
import type { RecordReader } from "./read-record.ts";
import type { RelocateFrames } from "./relocate-frames.ts";
import type { TaskIndex } from "./task-index.ts";
import type { UnflushedSegments } from "./unflushed-segments.ts";
import { walErrors } from "./wal-errors.ts";
import type { LastCompaction } from "./wal-stats.ts";

export interface CompactorParts extends ForgetParts {
  readonly floorBytes: number;
  readonly segments: Map<number, LogSegment>;
  readonly index: TaskIndex;
  readonly writer: LogWriter;
  readonly reader: RecordReader;
  readonly relocate: RelocateFrames;
  readonly unflushed: UnflushedSegments;
  readonly now: () => number;
  /** Goes on in a new file. */
  rotate(): Promise<void>;
  isTakenOver(): boolean;
  onError(error: unknown): void;
}

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
  #last: LastCompaction | null = null;

  constructor(parts: CompactorParts) {
    this.#parts = parts;
  }

  /** The last run that deleted a file. */
  get last(): LastCompaction | null {
    return this.#last;
  }

  /** Starts a run in the background when there is enough to gain. Cheap: called after every batch. */
  consider(): void {
    if (this.#running !== undefined || this.#isStopped || !this.#isDue()) return;
    this.#running = this.#run().finally(() => {
      this.#leftoverBytes = this.#sizes().garbage;
      this.#running = undefined;
    });
  }

  /** Ends after the slice at hand. */
  async stop(): Promise<void> {
    this.#isStopped = true;
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
    // Damage that only a hash names stays where it is until its life ends: nothing could stand for it elsewhere.
    const tried = new Set(this.#parts.index.unnamed().map(([, { segment }]) => segment));
    const startedMs = performance.now();
    let deletedSegments = 0;
    let freedBytes = 0;
    while (!this.#isStopped) {
      const { segments, writer, floorBytes, now } = this.#parts;
      const { live, garbage } = this.#sizes();
      if (garbage * 2 < live && !writer.isOnReserve) return;
      const victim = pickSegment([...segments.values()], tried, writer, floorBytes);
      if (victim === undefined) return;
      tried.add(victim);
      const { garbageBytes } = victim;
      try {
        if (victim === writer.active) await this.#parts.rotate();
        await this.#compact(victim);
      } catch (error) {
        // One file that cannot be read or deleted must not keep the others.
        this.#parts.onError(walErrors.unavailable(`compact ${victim.name}`, error));
      }
      if (segments.has(segmentKey(victim))) continue;
      deletedSegments += 1;
      freedBytes += garbageBytes;
      this.#last = {
        endedAt: new Date(now()).toISOString(),
        durationMs: Math.round(performance.now() - startedMs),
        deletedSegments,
        freedBytes,
      };
    }
  }

  async #compact(victim: LogSegment): Promise<void> {
    const { open, segments, unflushed } = this.#parts;
    if (!(await canForget(victim, this.#parts))) return;
    open.hold(victim);
    await moveSegment(victim, { ...this.#parts, isStopped: () => this.#isStopped }).finally(() =>
      open.release(victim),
    );
    if (this.#isStopped || victim.liveBytes > 0) return;
    // Durable first, deleted second. Without fsync this is the one place that flushes, and it flushes everything:
    // what replaced a frame of this file may be as new as the copies.
    await unflushed.flush();
    if (!(await canForget(victim, this.#parts)) || this.#parts.isTakenOver()) return;
    await open.remove(victim);
    unflushed.forget(victim);
    segments.delete(segmentKey(victim));
  }
}
