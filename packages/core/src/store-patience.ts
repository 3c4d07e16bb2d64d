import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import type { Timers } from "./timers.ts";

/** A store that fails for a moment is asked again soon, one that is down not every moment. */
const firstRetryMs = 250;
const maxRetryMs = 30_000;

/**
 * How long to wait before each next try. Others wait one lease after a failure before they take what has lapsed: the last tries
 * before that come in time. Spread, because all tasks of an instance lose their store at the same moment.
 */
export function* retryDelays({
  leaseMs,
  random,
}: Pick<ResolvedLifecycleOptions, "leaseMs" | "random">): Generator<number, never> {
  const longestMs = Math.min(maxRetryMs, Math.ceil(leaseMs / 3));
  for (let delayMs = Math.min(firstRetryMs, longestMs); ; delayMs = Math.min(delayMs * 2, longestMs))
    yield delayMs * (1 - random() / 2);
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
  readonly #options: Pick<ResolvedLifecycleOptions, "leaseMs" | "random" | "reportError" | "timers">;
  #over = false;
  /** Aborted when the calls that were made until then have one try left. */
  #hurry = new AbortController();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: Pick<ResolvedLifecycleOptions, "leaseMs" | "random" | "reportError" | "timers">) {
    this.#options = options;
  }

  /** From now on nothing is asked again. */
  end(): void {
    this.#over = true;
    this.#hurry.abort();
  }

  /** Gives the calls that were made in turn until now one more try, at once, and resolves when they are over. */
  async settle(): Promise<void> {
    const earlier = this.#turn;
    this.#hurry.abort();
    if (!this.#over) this.#hurry = new AbortController();
    await earlier;
  }

  /** Rejects as the call does, but with `store_unavailable` only when it may not be asked again. The first failure is reported. */
  untilThere<Value>(call: () => Promise<Value>): Promise<Value> {
    return this.#ask(call, this.#hurry.signal);
  }

  /** As {@link untilThere}, after every earlier call of this kind: one that was held up does not undo a later one. */
  inTurn(call: () => Promise<void>): Promise<void> {
    const { signal } = this.#hurry;
    const done = this.#turn.then(() => this.#ask(call, signal));
    // The caller hears of a failure; this one only keeps the order.
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #ask<Value>(call: () => Promise<Value>, hurry: AbortSignal): Promise<Value> {
    const { reportError, timers } = this.#options;
    const delays = retryDelays(this.#options);
    for (let isFirst = true; ; isFirst = false) {
      const isLast = hurry.aborted;
      try {
        return await call();
      } catch (error) {
        if (isLast || this.#over || !isLongJobsError(error, "store_unavailable")) throw error;
        // Not each time: many attempts may wait for one store.
        if (isFirst) reportError(error);
        await pause(delays.next().value, hurry, timers);
        if (this.#over) throw error;
      }
    }
  }
}
