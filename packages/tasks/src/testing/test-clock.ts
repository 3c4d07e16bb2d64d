interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/**
 * A clock that stands still until it is moved, for a store and the engines on it. It shows wall time and monotonic time, and
 * runs what was scheduled when it is moved past it.
 */
export class TestClock {
  #nowMs: number;
  readonly #timers = new Set<Timer>();

  /** @param startMs Epoch milliseconds. @default the first of January 2026, UTC */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  /** Epoch milliseconds. */
  readonly now = (): number => this.#nowMs;

  /** How many timers wait. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Runs something when the clock has been moved by `delayMs`; the returned function cancels it. */
  readonly schedule = (run: () => void, delayMs: number): (() => void) => {
    const timer: Timer = { dueMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  };

  /** Forgets every timer, as the end of a process does. */
  clearTimers(): void {
    this.#timers.clear();
  }

  /**
   * Moves the clock from timer to timer, each at its own time, and lets what they began come as far as it can without
   * waiting for anything but promises.
   *
   * @throws RangeError for a time that is not from 0.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError("A clock moves by 0 milliseconds or more.");
    const endMs = this.#nowMs + ms;
    await this.#settleAll();
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.run();
      await settle(turnsPerTimer);
    }
    this.#nowMs = endMs;
    await this.#settleAll();
  }

  async #settleAll(): Promise<void> {
    for (let turn = 0; turn < turnsAtEnd; turn += 1) {
      await settle(turnsPerTimer);
      await nextMillisecond();
    }
  }

  #next(endMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers)
      if (timer.dueMs <= endMs && (first === undefined || timer.dueMs < first.dueMs)) first = timer;
    return first;
  }
}

/** Turns of the event loop after each timer: enough for chains of promises. */
const turnsPerTimer = 3;
/** And at the end, for what is done off the thread, such as hashes. */
const turnsAtEnd = 6;

async function settle(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await nextTurn();
}

/** The next turn of the event loop, without the millisecond that a timer takes. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", () => {
      port1.close();
      resolve();
    });
    port1.start();
    port2.postMessage(undefined);
  });
}

/** A turn in which the machine may have done something else. */
function nextMillisecond(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
