import type { Attempt } from "./attempt.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { extendedTtlMs } from "./task-retention.ts";
import type { TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";
import type { TaskWriter } from "./task-writer.ts";
import { repeat } from "./timers.ts";

/**
 * The attempts of one engine, by task, and the housekeeping for them: every third of a lease each one hears
 * of what others did to its task, and is kept from expiring at work; expired tasks are swept.
 */
export class HeldAttempts {
  readonly #options: ResolvedLifecycleOptions;
  readonly #writer: TaskWriter;
  readonly #attempts = new Map<string, Attempt>();
  readonly #stopTimers: (() => void)[] = [];

  constructor(options: ResolvedLifecycleOptions, writer: TaskWriter) {
    this.#options = options;
    this.#writer = writer;
  }

  get size(): number {
    return this.#attempts.size;
  }

  get(taskId: string): Attempt | undefined {
    return this.#attempts.get(taskId);
  }

  all(): Attempt[] {
    return [...this.#attempts.values()];
  }

  hold(attempt: Attempt): void {
    this.#attempts.set(attempt.taskId, attempt);
  }

  /** Forgets an attempt that has ended, unless a later one holds the task by now. */
  release(attempt: Attempt): void {
    if (this.#attempts.get(attempt.taskId) === attempt) this.#attempts.delete(attempt.taskId);
  }

  /** Starts the timers, with the first use of the engine: a constructor starts none. Idempotent. */
  startTending(): void {
    if (this.#stopTimers.length > 0) return;
    const { leaseMs, sweepIntervalMs } = this.#options;
    this.#stopTimers.push(repeat(() => this.#tendAll(), Math.ceil(leaseMs / 3)));
    if (sweepIntervalMs !== null) this.#stopTimers.push(repeat(() => void this.#sweep(), sweepIntervalMs));
  }

  stopTending(): void {
    for (const stop of this.#stopTimers) stop();
  }

  #tendAll(): void {
    for (const attempt of this.all()) {
      if (attempt.recorded) this.#tend(attempt).catch(this.#options.reportError);
    }
  }

  async #tend(attempt: Attempt): Promise<void> {
    const record = await this.#options.store.get(attempt.taskId);
    attempt.observe(record);
    if (attempt.ended || record === undefined || this.#extension(record, attempt) === undefined) return;
    await this.#writer.write(attempt.taskId, (found) => this.#extension(found, attempt));
  }

  #extension(record: TaskRecord, { token }: Attempt): TaskPatch | undefined {
    if (record.lease?.token !== token) return undefined;
    const ttlMs = extendedTtlMs(record, this.#options.leaseMs, this.#options.now());
    return ttlMs === undefined ? undefined : { ttlMs };
  }

  /** A store that throws instead of rejecting must not end the process from within a timer. */
  async #sweep(): Promise<void> {
    try {
      await this.#options.store.sweep();
    } catch (error) {
      this.#options.reportError(error);
    }
  }
}
