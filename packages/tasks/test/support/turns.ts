import { vi } from "vitest";

/** A promise with its resolver: for code that must wait until the test says so. */
export interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

export function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Rejects with the reason of `signal`, or never. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** Lets everything that is ready run once: promises, then one turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Moves the fake clock in steps until a promise settles, and gives how far it went, in milliseconds. */
export async function elapse(
  promise: Promise<unknown>,
  stepMs: number,
  onStep: () => void = () => undefined,
): Promise<number> {
  const state = { settled: false };
  const settle = (): void => {
    state.settled = true;
  };
  promise.then(settle, settle);
  let passedMs = 0;
  while (!state.settled) {
    if (passedMs > 3_600_000) throw new Error("Nothing happened in an hour.");
    await vi.advanceTimersByTimeAsync(stepMs);
    // Hashes are made in other threads, which no fake clock waits for.
    for (let turn = 0; turn < 2; turn += 1) await crypto.subtle.digest("SHA-256", new Uint8Array(64));
    await nextTurn();
    passedMs += stepMs;
    onStep();
  }
  return passedMs;
}

/** Stops the clocks that a wait goes by; time then passes with `elapse` alone. */
export function stopClocks(): void {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"],
  });
}
