import type { Attempt } from "./attempt.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import type { Outcome } from "./outcome.ts";
import { runHandler, type Run, type TaskHandler } from "./run-handler.ts";
import { RunSlots } from "./run-slots.ts";
import type { ResolvedRunLimits } from "./run-limits.ts";

/**
 * The handlers that run in this process. A handler never runs beside an earlier one of its task: that one may have lost its
 * lease without having noticed, and is waited for.
 */
export class Runs {
  readonly #options: ResolvedLifecycleOptions;
  readonly #closing: AbortSignal;
  /** By task, the handlers that have not come to their end. */
  readonly #handlers = new Map<string, Promise<void>>();
  readonly #outcomes = new Set<Promise<Outcome>>();
  readonly #slots: RunSlots;
  #late = 0;

  constructor(options: ResolvedLifecycleOptions, closing: AbortSignal) {
    this.#options = options;
    this.#closing = closing;
    this.#slots = new RunSlots(options.maxConcurrentRuns);
  }

  /** How many more handlers may begin now. */
  get freeSlots(): number {
    return this.#slots.free;
  }

  /** Handlers that wait for a place. */
  get queued(): number {
    return this.#slots.queued;
  }

  /** Tasks with a handler that has not come to its end. */
  get size(): number {
    return this.#handlers.size;
  }

  /** How many handlers came to their end after their task had been ended without them. */
  get late(): number {
    return this.#late;
  }

  has(taskId: string): boolean {
    return this.#handlers.has(taskId);
  }

  /** Runs a handler when there is a place for it, and after the earlier one of the same task. Never rejects. */
  run(attempt: Attempt, handler: TaskHandler, limits: ResolvedRunLimits): Promise<Outcome> {
    const { taskId } = attempt;
    const earlier = this.#handlers.get(taskId);
    // With nothing to wait for the first step is taken at once: whoever listens has done so before.
    const { outcome, settled } =
      earlier === undefined && this.#slots.tryEnter()
        ? this.#begin(attempt, handler, limits)
        : inTime(this.#beginLater(earlier, attempt, handler, limits));
    this.#handlers.set(taskId, settled);
    void settled.then(() => {
      if (this.#handlers.get(taskId) === settled) this.#handlers.delete(taskId);
    });
    this.#outcomes.add(outcome);
    void outcome.finally(() => this.#outcomes.delete(outcome));
    return outcome;
  }

  /** Resolves when what became of every task has been written, or when the time is up. */
  async ended(timeoutMs: number): Promise<void> {
    if (this.#outcomes.size === 0 || timeoutMs <= 0) return;
    await this.#options.timers.withinAwake(Promise.all(this.#outcomes), timeoutMs);
  }

  /** The place is held until the handler itself has come to its end. */
  #begin(attempt: Attempt, handler: TaskHandler, limits: ResolvedRunLimits): Run {
    const run = this.#start(attempt, handler, limits);
    void run.settled.then(() => this.#slots.leave());
    return run;
  }

  async #beginLater(
    earlier: Promise<void> | undefined,
    attempt: Attempt,
    handler: TaskHandler,
    limits: ResolvedRunLimits,
  ): Promise<Run> {
    await earlier;
    if (await this.#slots.enter(attempt.signal)) return this.#begin(attempt, handler, limits);
    return this.#start(attempt, handler, limits);
  }

  /** Work that was told to stop before it began does not begin; its end is written as that of any other run. */
  #start(attempt: Attempt, handler: TaskHandler, limits: ResolvedRunLimits): Run {
    const mayBegin = !attempt.signal.aborted && !attempt.ended;
    return runHandler(attempt, mayBegin ? handler : () => attempt.signal.throwIfAborted(), {
      options: this.#options,
      limits,
      closing: this.#closing,
      onLate: (late) => this.#countLate(attempt, late),
    });
  }

  #countLate(attempt: Attempt, late: Outcome): void {
    this.#late += 1;
    // After a forced cancel nobody misses the result; a deadline that is passed in silence would stay a riddle.
    if (isLongJobsError(attempt.signal.reason, "deadline_exceeded"))
      this.#options.reportError(lifecycleErrors.lateOutcome(attempt.taskId, late.status));
  }
}

function inTime(run: Promise<Run>): Run {
  return { outcome: run.then(({ outcome }) => outcome), settled: run.then(({ settled }) => settled) };
}
