import type { Attempt } from "./attempt.ts";
import { duration, maxTimerMs, type ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import { rejectedOutcome, type Outcome } from "./outcome.ts";

/** How long one run of a handler may take. */
export interface RunLimits {
  /**
   * The run deadline of one attempt, in milliseconds of working time: while the attempt waits for answers its clock stands
   * still. Then the signal is aborted with `deadline_exceeded`, and a handler that goes on all the same is not waited for.
   * @default null: no limit
   */
  readonly maxRunMs?: number | null;
  /**
   * How long a handler may go on after a cancel, in milliseconds; then its task becomes `cancelled` without it, and what it
   * still returns is dropped. @default null: the handler says when it has stopped
   */
  readonly cancelGraceMs?: number | null;
}

/** {@link RunLimits} with every default filled in. */
export interface ResolvedRunLimits {
  readonly maxRunMs: number | null;
  readonly cancelGraceMs: number | null;
}

/** Time for a handler to hear its signal and to stop by itself, after which it is not waited for any longer. */
export const reactionMs = 250;

/** Checks the limits. @throws TypeError, RangeError */
export function resolveRunLimits({ maxRunMs, cancelGraceMs }: RunLimits): ResolvedRunLimits {
  const bounds = { nullable: true, max: maxTimerMs } as const;
  return {
    maxRunMs: duration("maxRunMs", maxRunMs, null, bounds),
    cancelGraceMs: duration("cancelGraceMs", cancelGraceMs, null, { ...bounds, min: 0 }),
  };
}

/** The limits of one run while it goes on. */
export interface WatchedRun {
  /** Resolves when the handler is not waited for any longer, to what becomes of its task. May never resolve. */
  readonly forced: Promise<Outcome>;
  readonly stop: () => void;
}

/** Watches the limits of a run. Aborts the signal at its deadline. */
export function watchRun(
  attempt: Attempt,
  { maxRunMs, cancelGraceMs }: ResolvedRunLimits,
  options: ResolvedLifecycleOptions,
): WatchedRun {
  const stops = new Set<() => void>();
  const stop = (): void => {
    for (const each of stops) each();
    stops.clear();
  };
  const forced = new Promise<Outcome>((resolve) => {
    const force = (): void => {
      const { reason } = attempt.signal as { reason: unknown };
      resolve(rejectedOutcome(reason, reason, options.jsonLimits));
    };
    const onAbort = (): void => {
      const waitMs = patienceMs(attempt.signal.reason, cancelGraceMs);
      if (waitMs !== undefined) stops.add(options.timers.later(force, waitMs));
    };
    const onDeadline = (): void => {
      // A handler that goes on after a cancel is not waited for for ever either: it ends as its client wished.
      if (isLongJobsError(attempt.signal.reason, "cancelled")) force();
      else attempt.abort(lifecycleErrors.deadlineExceeded(attempt.taskId, maxRunMs ?? 0));
    };
    if (maxRunMs !== null) stops.add(watchDeadline(attempt, maxRunMs, onDeadline, options));
    attempt.signal.addEventListener("abort", onAbort);
    stops.add(() => {
      attempt.signal.removeEventListener("abort", onAbort);
    });
    if (attempt.signal.aborted) onAbort();
  });
  return { forced, stop };
}

/** How long a handler is waited for after its signal, or `undefined` for as long as it takes. */
function patienceMs(reason: unknown, cancelGraceMs: number | null): number | undefined {
  if (isLongJobsError(reason, "deadline_exceeded")) return reactionMs;
  return isLongJobsError(reason, "cancelled") ? (cancelGraceMs ?? undefined) : undefined;
}

/** Calls `onDeadline` when the attempt has worked for `maxRunMs`; waiting for a person is no work. */
function watchDeadline(
  attempt: Attempt,
  maxRunMs: number,
  onDeadline: () => void,
  { monotonicNow, timers }: ResolvedLifecycleOptions,
): () => void {
  let leftMs = maxRunMs;
  let sinceMs = monotonicNow();
  const arm = (): (() => void) => timers.later(onDeadline, Math.ceil(leftMs));
  let cancel = arm();
  const unlisten = attempt.onWaiting((waiting) => {
    cancel();
    if (waiting) {
      leftMs = Math.max(0, leftMs - (monotonicNow() - sinceMs));
    } else {
      sinceMs = monotonicNow();
      cancel = arm();
    }
  });
  return () => {
    cancel();
    unlisten();
  };
}
