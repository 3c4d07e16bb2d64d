import { setImmediate as nextTurn } from "node:timers/promises";
import type { FrameDraft } from "./draft-frame.ts";
import { isNoSpace, ShortWriteError, type FileLayer } from "./file-layer.ts";
import type { LogSegment } from "./log-segment.ts";
import { AppendFailure, TakenOverError, type LogWriter, type PlacedFrame } from "./log-writer.ts";
import type { ReserveFile } from "./reserve-file.ts";
import { walErrors } from "./wal-errors.ts";

/**
 * Who may write on a full disk: `terminal` writes, which end a task, and `housekeeping`, which frees space.
 */
export type WriteRank = "ordinary" | "terminal" | "housekeeping";

/** A frame that waits to be written. */
export interface AppendRequest {
  readonly draft: FrameDraft;
  readonly rank: WriteRank;
  /** Called when the frame is durable, before anybody is told: makes it visible. */
  readonly onDurable: (placed: PlacedFrame) => void;
}

interface Waiting extends AppendRequest {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface AppendQueueParts {
  readonly writer: LogWriter;
  readonly files: FileLayer;
  readonly dir: string;
  readonly reserve: ReserveFile | undefined;
  /** After each good batch, before it is acknowledged. */
  readonly onWritten: (segment: LogSegment) => void;
  /** After each batch, good or bad. */
  readonly onSettled: () => void;
  readonly onTakenOver: () => void;
  readonly monotonicMs: () => number;
  readonly onError: (error: unknown) => void;
}

/** One write call and one encoding pass stay short enough not to hold up the event loop. */
const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_BATCH_FRAMES = 1_000;

/** About what one writer keeps the event loop busy between two of its writes. */
const WRITER_MS = 0.01;

/** With less than this left, a write that came out short met a full disk. */
const NEARLY_FULL_BYTES = 1024 * 1024;

/**
 * Group commit: while one batch is flushed, everything that arrives gathers in the next. A batch is
 * acknowledged after its flush and never spans two segments.
 */
export class AppendQueue {
  readonly #parts: AppendQueueParts;
  #waiting: Waiting[] = [];
  #rotations: Pick<Waiting, "resolve" | "reject">[] = [];
  #stopped: Error | undefined;
  #flushes = 0;
  #records = 0;
  /** Frames of the batch before, and when it ended. */
  #lastFrames = 0;
  #lastEndedMs = -Infinity;
  /** The shortest of the latest batches: what a batch takes when nobody keeps the event loop from noticing its end. */
  #batchMs = Infinity;
  #running: Promise<void> | undefined;

  constructor(parts: AppendQueueParts) {
    this.#parts = parts;
  }

  /** Batches that became durable, and the frames in them. */
  get counts(): { readonly flushes: number; readonly records: number } {
    return { flushes: this.#flushes, records: this.#records };
  }

  /** Resolves when the frame is durable; rejects with `no_space` or `store_unavailable`. */
  append(request: AppendRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      const { draft, rank, onDurable } = request;
      this.#waiting.push({ draft, rank, onDurable, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Goes on in a new file before the next batch, so that the one before it can be compacted. */
  rotate(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#rotations.push({ resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** From now on nothing is written: every request rejects with `error`. */
  stop(error: Error): void {
    this.#stopped ??= error;
  }

  /** Resolves when nothing is waiting or in flight. */
  async drain(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Calls made in the same turn share the first batch.
    await Promise.resolve();
    const { monotonicMs } = this.#parts;
    const isRecent = this.#lastFrames > 1 && monotonicMs() - this.#lastEndedMs < this.#batchMs;
    for (let isFirst = true; this.#waiting.length > 0 || this.#rotations.length > 0; isFirst = false) {
      if (this.#rotations.length > 0) await this.#rotateNow();
      if (this.#isDiskSlow() && (isRecent || !isFirst)) await twoTurns();
      const batch = this.#takeBatch(isFirst ? MAX_BATCH_FRAMES : this.#evenShare());
      const startedMs = monotonicMs();
      try {
        if (this.#stopped !== undefined) rejectAll(batch, this.#stopped);
        else if (batch.length > 0) await this.#commit(batch);
      } catch (error) {
        rejectAll(batch, walErrors.unavailable("write", error));
      }
      this.#lastFrames = batch.length;
      this.#lastEndedMs = monotonicMs();
      this.#batchMs = Math.min(this.#lastEndedMs - startedMs, this.#batchMs * 1.1);
      this.#parts.onSettled();
    }
    this.#running = undefined;
  }

  async #rotateNow(): Promise<void> {
    const asked = this.#rotations;
    this.#rotations = [];
    try {
      if (this.#stopped !== undefined) throw this.#stopped;
      await this.#parts.writer.beginSegment();
      for (const { resolve } of asked) resolve();
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }

  #takeBatch(mostFrames: number): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { draft } of this.#waiting) {
      bytes += draft.bytes;
      if (count === mostFrames || (count > 0 && bytes > MAX_BATCH_BYTES)) break;
      count += 1;
    }
    if (count === this.#waiting.length) {
      const all = this.#waiting;
      this.#waiting = [];
      return all;
    }
    return this.#waiting.splice(0, count);
  }

  /**
   * Whether a batch takes longer than the writers, those that wait and those that were just acknowledged, need to come
   * back. Then all of them share one flush: the next batch waits for those that come back at once. Else they write in
   * two groups, of which each works while the other waits for the disk.
   */
  #isDiskSlow(): boolean {
    return this.#batchMs > (this.#waiting.length + this.#lastFrames) * WRITER_MS;
  }

  /**
   * Writers come back in the groups in which they are acknowledged: uneven ones are evened out, unless a batch is over
   * so soon, as one without a flush is, that there is nothing to do beside it.
   */
  #evenShare(): number {
    const { length } = this.#waiting;
    const isOverSoon = this.#batchMs * 10 < length * WRITER_MS;
    if (length <= this.#lastFrames || isOverSoon || this.#isDiskSlow()) return MAX_BATCH_FRAMES;
    return Math.min(MAX_BATCH_FRAMES, Math.ceil((length + this.#lastFrames) / 2));
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const { writer } = this.#parts;
    const isCramped = batch.some(({ rank }) => rank === "ordinary") || !writer.hasRoom(bytesOf(batch));
    if (writer.isOnReserve && isCramped) await this.#tryToLeaveReserve();
    const admitted = await this.#admit(batch);
    if (admitted.length === 0) return;

    let placed: PlacedFrame[];
    try {
      placed = await writer.append(admitted.map(({ draft }) => draft));
    } catch (error) {
      await this.#recover(admitted, error);
      return;
    }
    this.#flushes += 1;
    this.#records += placed.length;
    if (placed[0] !== undefined) this.#parts.onWritten(placed[0].segment);
    // Durable first, visible second, acknowledged third.
    for (const [index, request] of admitted.entries()) {
      const frame = placed[index];
      if (frame !== undefined) request.onDurable(frame);
    }
    for (const { resolve } of admitted) resolve();
  }

  /** Those that have room, in a new file if need be. The others are rejected: nothing of them was written. */
  async #admit(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const { writer, dir } = this.#parts;
    if (writer.isOnReserve) return this.#admitToReserve(batch);
    if (writer.hasRoom(bytesOf(batch))) return batch;
    try {
      await this.#prepareReserve(batch);
      await writer.beginSegment();
      return batch;
    } catch (error) {
      const isFull = isNoSpace(error);
      if (isFull && (await this.#tryReserve())) return this.#admitToReserve(batch);
      rejectAll(
        batch,
        isFull ? walErrors.noSpace(dir, error) : walErrors.unavailable("begin a new file", error),
      );
      return [];
    }
  }

  /** The reserve is for ends of tasks. What frees space may use half of it; nothing else may use any. */
  #admitToReserve(batch: readonly Waiting[]): readonly Waiting[] {
    const { writer, dir } = this.#parts;
    let bytes = 0;
    const admitted = batch.filter(({ rank, draft }) => {
      const after = bytes + draft.bytes;
      const fits = rank === "housekeeping" ? writer.hasRoomForHousekeeping(after) : writer.hasRoom(after);
      if (rank === "ordinary" || !fits) return false;
      bytes = after;
      return true;
    });
    const refused = new Set(batch);
    for (const request of admitted) refused.delete(request);
    rejectAll([...refused], walErrors.noSpace(dir));
    return admitted;
  }

  /** A write or flush failed, and its segment has ended. */
  async #recover(batch: readonly Waiting[], failure: unknown): Promise<void> {
    const { writer, dir } = this.#parts;
    const error = failure instanceof AppendFailure ? failure.cause : failure;
    if (error instanceof TakenOverError) {
      this.#parts.onTakenOver();
      rejectAll(
        batch,
        walErrors.unavailable("acknowledge the write: the directory is no longer its own", error),
      );
      return;
    }
    const isFull = isNoSpace(error) || (error instanceof ShortWriteError && (await this.#isNearlyFull()));
    // The end of the failed segment becomes durable before anybody hears of the failure: a write that was
    // rejected must not come back at the next opening.
    const isEndDurable = isFull
      ? (await this.#tryReserve()) || (await this.#tryBegin())
      : await this.#tryBegin();
    if (isFull && writer.isOnReserve) {
      const urgent = this.#admitToReserve(batch);
      if (urgent.length > 0) await this.#commit(urgent);
      return;
    }
    const isAbsent = isEndDurable || (failure instanceof AppendFailure && failure.isAbsent);
    rejectAll(
      batch,
      isFull && isAbsent ? walErrors.noSpace(dir, error) : walErrors.unavailable("write", error),
    );
  }

  async #tryBegin(): Promise<boolean> {
    try {
      await this.#parts.writer.beginSegment();
      return true;
    } catch (error) {
      this.#parts.onError(walErrors.unavailable("begin a new file", error));
      return false;
    }
  }

  async #tryReserve(): Promise<boolean> {
    if (this.#parts.reserve?.isReady !== true) return false;
    try {
      await this.#parts.writer.beginOnReserve();
      return true;
    } catch (error) {
      this.#parts.onError(walErrors.unavailable("use its reserve", error));
      return false;
    }
  }

  /** Space is back when there is enough for a new reserve; only then does the log leave the old one. */
  async #tryToLeaveReserve(): Promise<void> {
    const { reserve, writer, files, dir } = this.#parts;
    if (reserve === undefined) return;
    try {
      if ((await files.freeBytes(dir)) < reserve.bytes * 2) return;
      await reserve.prepare();
      await writer.beginSegment();
    } catch (error) {
      // Still full: the callers are told `no_space`. Anything else is worth knowing.
      if (!isNoSpace(error)) this.#parts.onError(walErrors.unavailable("leave its reserve", error));
    }
  }

  /** The reserve is made before the first write of a user, while there is space. */
  async #prepareReserve(batch: readonly Waiting[]): Promise<void> {
    const { reserve } = this.#parts;
    if (reserve === undefined || reserve.isReady || batch.every(({ rank }) => rank === "housekeeping"))
      return;
    try {
      await reserve.prepare();
    } catch (error) {
      this.#parts.onError(
        isNoSpace(error)
          ? walErrors.noSpace(this.#parts.dir, error)
          : walErrors.unavailable("make its reserve", error),
      );
    }
  }

  async #isNearlyFull(): Promise<boolean> {
    try {
      return (await this.#parts.files.freeBytes(this.#parts.dir)) < NEARLY_FULL_BYTES;
    } catch {
      return false; // Unknown: the write is reported as unavailable, which promises less.
    }
  }
}

/** Whoever is acknowledged now writes again in this turn or, behind the same turn of its own, in the next. */
async function twoTurns(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

function bytesOf(batch: readonly Waiting[]): number {
  let bytes = 0;
  for (const { draft } of batch) bytes += draft.bytes;
  return bytes;
}

function rejectAll(batch: readonly Waiting[], error: unknown): void {
  for (const { reject } of batch) reject(error);
}
