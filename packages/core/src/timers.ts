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

/** Node's timers are objects that keep the process alive unless told not to; elsewhere they are numbers. */
function release(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}
