import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import type { Timers } from "./timers.ts";

/** A store that fails for a moment is asked again soon, one that is down not every moment. */
const firstRetryMs = 250;
const maxRetryMs = 30_000;

/**
 * How long to wait before each next try. Others wait one lease after a failure before they take what has lapsed: the last tries
 * before that come in time.
 */
export function* retryDelays(leaseMs: number): Generator<number, never> {
  const longestMs = Math.min(maxRetryMs, Math.ceil(leaseMs / 3));
  for (let delayMs = Math.min(firstRetryMs, longestMs); ; delayMs = Math.min(delayMs * 2, longestMs))
    yield delayMs;
}

/** Resolves when the time is up, or at once when the signal is aborted. */
export async function pause(delayMs: number, signal: AbortSignal, timers: Timers): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const cancel = timers.later(wake, delayMs);
    function wake(): void {
      cancel();
      signal.removeEventListener("abort", wake);
      resolve();
    }
    signal.addEventListener("abort", wake);
  });
}

/**
 * What an attempt asks of its store while it works is asked again while the store is away, until the attempt is told to stop: by
 * its lease at the latest. So an outage costs a handler time, and its task nothing.
 */
export class StorePatience {
  readonly #options: Pick<ResolvedLifecycleOptions, "leaseMs" | "reportError" | "timers">;
  readonly #over = new AbortController();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: Pick<ResolvedLifecycleOptions, "leaseMs" | "reportError" | "timers">) {
    this.#options = options;
  }

  /** From now on nothing is asked again. */
  end(): void {
    this.#over.abort();
  }

  /** Rejects as the call does, but with `store_unavailable` only after {@link end}. Every failed try is reported. */
  async untilThere<Value>(call: () => Promise<Value>): Promise<Value> {
    const delays = retryDelays(this.#options.leaseMs);
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (this.#over.signal.aborted || !isLongJobsError(error, "store_unavailable")) throw error;
        this.#options.reportError(error);
        await pause(delays.next().value, this.#over.signal, this.#options.timers);
        if (this.#over.signal.aborted) throw error;
      }
    }
  }

  /** As {@link untilThere}, after every earlier call of this kind: one that was held up does not undo a later one. */
  inTurn(call: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(() => this.untilThere(call));
    // The caller hears of a failure; this one only keeps the order.
    this.#turn = done.catch(() => undefined);
    return done;
  }
}
