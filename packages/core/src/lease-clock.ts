/** A moment on both clocks: the wall clock goes on while a machine sleeps, the monotonic one is never set. */
export interface Instant {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** The clocks of an engine. */
export interface Clocks {
  readonly now: () => number;
  readonly monotonicNow: () => number;
}

/** This moment. */
export function instant({ now, monotonicNow }: Clocks): Instant {
  return { wallMs: now(), monotonicMs: monotonicNow() };
}

/**
 * How much of a duration that began at `since` is left, by whichever clock has gone further: a lease that may have
 * lapsed by one of them is not relied on.
 */
export function leftMs(since: Instant, durationMs: number, clocks: Clocks): number {
  const passedMs = Math.max(clocks.now() - since.wallMs, clocks.monotonicNow() - since.monotonicMs);
  return durationMs - passedMs;
}
