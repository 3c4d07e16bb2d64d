/** Calls `run` again and again without keeping the process alive; the returned function ends it. */
export function repeat(run: () => void, intervalMs: number): () => void {
  const timer = setInterval(run, intervalMs);
  release(timer);
  return () => {
    clearInterval(timer);
  };
}

/** Calls `run` once, later, without keeping the process alive; the returned function ends it. */
export function later(run: () => void, delayMs: number): () => void {
  const timer = setTimeout(run, delayMs);
  release(timer);
  return () => {
    clearTimeout(timer);
  };
}

/** As {@link later}, for work that has to be done before the process may end. */
export function laterAwake(run: () => void, delayMs: number): () => void {
  const timer = setTimeout(run, delayMs);
  return () => {
    clearTimeout(timer);
  };
}

/** Resolves to true with the work, or to false when the time is up. Rejects as the work does. */
export async function within(
  work: Promise<unknown>,
  timeoutMs: number,
  startTimer: typeof later = later,
): Promise<boolean> {
  let cancelTimer = (): void => undefined;
  const timeUp = new Promise<false>((resolve) => {
    cancelTimer = startTimer(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), timeUp]);
  } finally {
    cancelTimer();
  }
}

/** Node's timers are objects that keep the process alive unless told not to; elsewhere they are numbers. */
function release(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}
