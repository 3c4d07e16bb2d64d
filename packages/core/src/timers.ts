/** Runs something later, not at once; the returned function cancels it. `keepsAlive`: the process must not end before. */
export type Schedule = (run: () => void, delayMs: number, keepsAlive: boolean) => () => void;

/** How an engine waits. */
export class Timers {
  readonly #schedule: Schedule;

  constructor(schedule: Schedule = scheduleByTimer) {
    this.#schedule = schedule;
  }

  /** Calls `run` once, later, without keeping the process alive; the returned function ends it. */
  later(run: () => void, delayMs: number): () => void {
    return this.#schedule(run, delayMs, false);
  }

  /** Calls `run` again and again without keeping the process alive; the returned function ends it. */
  repeat(run: () => void, intervalMs: number): () => void {
    const again = (): void => {
      cancel = this.#schedule(again, intervalMs, false);
      run();
    };
    let cancel = this.#schedule(again, intervalMs, false);
    return () => cancel();
  }

  /** Resolves to true with the work, or to false when the time is up. Rejects as the work does. */
  within(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
    return this.#within(work, timeoutMs, false);
  }

  /** As {@link within}, for work that has to be done before the process may end. */
  withinAwake(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
    return this.#within(work, timeoutMs, true);
  }

  async #within(work: Promise<unknown>, timeoutMs: number, keepsAlive: boolean): Promise<boolean> {
    let cancelTimer = (): void => undefined;
    const timeUp = new Promise<false>((resolve) => {
      cancelTimer = this.#schedule(() => resolve(false), timeoutMs, keepsAlive);
    });
    try {
      return await Promise.race([work.then(() => true), timeUp]);
    } finally {
      cancelTimer();
    }
  }
}

/** Node's timers are objects that keep the process alive unless told not to; elsewhere they are numbers. */
function scheduleByTimer(run: () => void, delayMs: number, keepsAlive: boolean): () => void {
  const timer: unknown = setTimeout(run, delayMs);
  if (!keepsAlive) (timer as { unref?: () => void }).unref?.();
  return () => {
    clearTimeout(timer as number);
  };
}
