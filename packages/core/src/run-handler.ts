import { isRefusal, type Attempt } from "./attempt.ts";
import type { JsonObject } from "./json.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError, LongJobsError } from "./longjobs-error.ts";
import { normalizeJsonObject } from "./normalize-json.ts";
import { rejectedOutcome, toToolError, type Outcome } from "./outcome.ts";
import { watchRun, type ResolvedRunLimits } from "./run-limits.ts";
import { pause, retryDelays } from "./store-patience.ts";
import type { TaskAttempt } from "./task-handle.ts";
import type { FinalOutcome } from "./terminal-patch.ts";

/** The work of a task: resolves to its result, or to nothing when it has ended the task itself. */
export type TaskHandler = (task: TaskAttempt) => Promise<JsonObject | void> | JsonObject | void;

/** What a run is part of. */
export interface RunContext {
  readonly options: ResolvedLifecycleOptions;
  readonly limits: ResolvedRunLimits;
  /** Aborted when the engine closes. */
  readonly closing: AbortSignal;
  /** Called with what a handler came to after its task had been ended without it. */
  readonly onLate: (late: Outcome) => void;
}

/** A run that has begun. */
export interface Run {
  /** What became of the task. Never rejects. */
  readonly outcome: Promise<Outcome>;
  /** Resolves when the handler itself has come to its end, which a handler that ignores its signal may never do. */
  readonly settled: Promise<void>;
}

/**
 * Runs a handler and writes what becomes of its task, by the table of DESIGN "Signals and outcomes" (see
 * {@link rejectedOutcome}). A terminal write that the store refuses is reported and repeated until it stands or the
 * engine closes: a result that took hours is not given up for a store that is down for minutes. A task that was never
 * recorded stays unrecorded; its outcome is the answer of the call.
 */
export function runHandler(attempt: Attempt, handler: TaskHandler, context: RunContext): Run {
  const work = outcomeOf(attempt, handler, context.options);
  return { outcome: finishRun(attempt, work, context), settled: work.then(() => undefined) };
}

async function finishRun(attempt: Attempt, work: Promise<Outcome>, context: RunContext): Promise<Outcome> {
  const { options, limits, closing, onLate } = context;
  const watched = watchRun(attempt, limits, options);
  const first = await Promise.race([
    work.then((outcome) => ({ outcome, late: false })),
    watched.forced.then((outcome) => ({ outcome, late: true })),
  ]);
  watched.stop();
  if (first.late) void work.then(onLate);
  const { outcome } = first;
  if (outcome.status !== "abandoned" && attempt.accepted)
    return writeOutcome(attempt, outcome, options, closing);
  if (isLongJobsError(attempt.signal.reason, "shutdown")) await giveBack(attempt, options);
  else attempt.abandon();
  return outcome;
}

/** A handler that stopped for a shutdown has had its turn: another instance may go on at once. */
async function giveBack(attempt: Attempt, options: ResolvedLifecycleOptions): Promise<void> {
  try {
    await attempt.release();
  } catch (error) {
    // The lease lapses by itself.
    options.reportError(error);
  }
}

async function outcomeOf(
  attempt: Attempt,
  handler: TaskHandler,
  options: ResolvedLifecycleOptions,
): Promise<Outcome> {
  try {
    const result = await handler(attempt);
    if (result === undefined && attempt.ended) return { status: "abandoned", reason: attempt.signal.reason };
    return completed(result, options);
  } catch (error) {
    return rejectedOutcome(error, attempt.signal.reason, options.jsonLimits);
  }
}

/** A result that cannot be stored ends the task all the same, and says why: it must not stay `working`. */
function completed(result: unknown, { jsonLimits }: ResolvedLifecycleOptions): Outcome {
  try {
    return { status: "completed", result: normalizeJsonObject(result, "result", jsonLimits) };
  } catch (error) {
    return { status: "completed", result: toToolError(error, jsonLimits) };
  }
}

async function writeOutcome(
  attempt: Attempt,
  first: FinalOutcome,
  options: ResolvedLifecycleOptions,
  closing: AbortSignal,
): Promise<Outcome> {
  let outcome = first;
  const delays = retryDelays(options);
  for (;;) {
    try {
      await attempt.end(outcome);
      return outcome;
    } catch (error) {
      // Any other error leaves open whether the outcome was written: the next try recognises it.
      const certain = isRefusal(error) || !attempt.recorded;
      if (attempt.ended && certain) return { status: "abandoned", reason: error };
      if (isLongJobsError(error, "record_too_large")) outcome = tooLarge(outcome, error, options);
      else options.reportError(error);
    }
    if (closing.aborted) {
      attempt.abandon();
      return { status: "abandoned", reason: closing.reason };
    }
    await pause(delays.next().value, closing, options.timers);
  }
}

/** What is kept of an outcome that the store refuses for its size: how the task ended, and why that is all. */
function tooLarge(
  outcome: FinalOutcome,
  error: LongJobsError,
  { jsonLimits }: ResolvedLifecycleOptions,
): FinalOutcome {
  if (outcome.status === "failed") {
    const { code, message } = outcome.error;
    return {
      status: "failed",
      error: { code, message: message.slice(0, 1_000), data: { omitted: error.message } },
    };
  }
  const told = new LongJobsError("record_too_large", `The result was too large to keep. ${error.message}`, {
    recoveryHint: "Call the tool again and ask for less at a time.",
    ...(error.partial === undefined ? {} : { partial: error.partial }),
  });
  return { status: "completed", result: toToolError(told, jsonLimits) };
}
