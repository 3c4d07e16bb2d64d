import { jsonEquals } from "./canonical-json.ts";
import { statusMessageOf } from "./task-progress.ts";
import type { TaskProgress } from "./task-record.ts";
import type { WritePlan } from "./task-writer.ts";
import type { Timers } from "./timers.ts";

/** What a {@link ProgressWriter} needs of its attempt. */
export interface ProgressSink {
  /** In the long run at least this long between two writes, in milliseconds; 0 for no limit. */
  readonly intervalMs: number;
  readonly timers: Timers;
  readonly monotonicNow: () => number;
  write(plan: WritePlan): Promise<void>;
  /** A write that no caller waits for was refused or failed. */
  onError(error: unknown): void;
}

/** Writes that may follow each other at once: a handler that reports each of a few steps waits for none. */
const burst = 64;

/**
 * Writes progress into the record. While a write is under way, what comes is merged into the next one; a handler that
 * goes on reporting faster than the interval is written once per interval. The last word is always written.
 */
export class ProgressWriter {
  readonly #sink: ProgressSink;
  #latest: TaskProgress | undefined;
  #queued: Promise<void> | undefined;
  #credits = burst;
  #creditedAtMs: number;
  #cancelLate: (() => void) | undefined;

  constructor(sink: ProgressSink) {
    this.#sink = sink;
    this.#creditedAtMs = sink.monotonicNow();
  }

  /** Resolves when the progress is written, or at once when it will be with a later write. */
  async report(progress: TaskProgress): Promise<void> {
    this.#latest = progress;
    if (this.#queued === undefined && !this.#hasCredit()) return this.#writeLate();
    this.#queued ??= this.#write();
    await this.#queued;
  }

  /** Ends the timer; nothing is written any more. */
  stop(): void {
    this.#cancelLate?.();
  }

  #hasCredit(): boolean {
    const { intervalMs } = this.#sink;
    if (intervalMs === 0) return true;
    const nowMs = this.#sink.monotonicNow();
    this.#credits = Math.min(burst, this.#credits + (nowMs - this.#creditedAtMs) / intervalMs);
    this.#creditedAtMs = nowMs;
    return this.#credits >= 1;
  }

  #writeLate(): void {
    this.#cancelLate ??= this.#sink.timers.later(() => {
      this.#cancelLate = undefined;
      this.#queued ??= this.#write();
      this.#queued.catch((error: unknown) => this.#sink.onError(error));
    }, this.#sink.intervalMs);
  }

  #write(): Promise<void> {
    let sent: TaskProgress | undefined;
    this.#credits -= 1;
    const written = this.#sink.write((record, retrying) => {
      // From here on a further call needs a write of its own; until here this one carries the latest value.
      release();
      sent ??= this.#latest ?? {};
      if (retrying && jsonEquals(record.progress, sent)) return undefined;
      return { progress: sent, statusMessage: statusMessageOf(sent) };
    });
    const release = (): void => {
      if (this.#queued === written) this.#queued = undefined;
    };
    // A write that fails before it is planned must not stand in the way of the next one.
    void written.then(release, release);
    return written;
  }
}
