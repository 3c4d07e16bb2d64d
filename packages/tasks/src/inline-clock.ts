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

/** Node's timers are objects that keep the process alive unless told not to; elsewhere they are numbers. */
function scheduleByTimer(run: () => void, delayMs: number, keepsAlive: boolean): () => void {
  const timer: unknown = setTimeout(run, delayMs);
  if (!keepsAlive) (timer as { unref?: () => void }).unref?.();
  return () => {
    clearTimeout(timer as number);
  };
}
