import type { Schedule } from "@longjobs/core";

/** How calls measure their inline budget. */
export interface InlineClock {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  readonly schedule: Schedule;
}

/** The clock of the engine's options, or the machine's. */
export function inlineClock({ monotonicNow, schedule }: InlineClockOptions): InlineClock {
  return { now: monotonicNow ?? (() => performance.now()), schedule: schedule ?? scheduleByTimer };
}

interface InlineClockOptions {
  readonly monotonicNow?: (() => number) | undefined;
  readonly schedule?: Schedule | undefined;
}

function scheduleByTimer(run: () => void, delayMs: number): () => void {
  const timer = setTimeout(run, delayMs);
  return () => {
    clearTimeout(timer);
  };
}
