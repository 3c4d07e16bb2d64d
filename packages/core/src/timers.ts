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

/** Resolves with the work, or when the time is up. Rejects as the work does. */
export async function within(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let cancelTimer = (): void => undefined;
  const timeUp = new Promise<void>((resolve) => {
    cancelTimer = later(resolve, timeoutMs);
  });
  try {
    await Promise.race([work, timeUp]);
  } finally {
    cancelTimer();
  }
}

/** Node's timers are objects that keep the process alive unless told not to; elsewhere they are numbers. */
function release(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}
