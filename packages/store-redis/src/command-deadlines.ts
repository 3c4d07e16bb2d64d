/**
 * A time limit for every command. All have the same one, so the first to begin is the first to be late: a set
 * in order of insertion and one timer do for any number.
 */
export class CommandDeadlines {
  readonly #limitMs: number;
  readonly #pending = new Set<Pending>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /**
   * The outcome of `work`, or `late()` when it has not settled in time.
   *
   * @param onFailure - What to resolve to instead of a failure. @default the failure itself
   */
  within<T>(
    work: Promise<T>,
    late: () => Error,
    onFailure: (error: unknown) => Promise<T> = reject,
  ): Promise<T> {
    return new Promise<T>((settle, fail) => {
      const pending = { endsAtMs: performance.now() + this.#limitMs, giveUp: () => fail(late()) };
      this.#pending.add(pending);
      if (this.#timer === undefined) this.#timer = this.#wait(this.#limitMs);
      work.then(
        (value) => {
          this.#pending.delete(pending);
          settle(value);
        },
        (error: unknown) => {
          // Who was told that it is late is not told again.
          if (this.#pending.delete(pending)) settle(onFailure(error));
        },
      );
    });
  }

  #wait(delayMs: number): NodeJS.Timeout {
    // What a process lives on is its connection: a deadline alone does not keep it.
    return setTimeout(() => this.#check(), Math.max(1, Math.ceil(delayMs))).unref();
  }

  #check(): void {
    this.#timer = undefined;
    for (const pending of this.#pending) {
      const leftMs = pending.endsAtMs - performance.now();
      if (leftMs > 0) {
        this.#timer = this.#wait(leftMs);
        return;
      }
      this.#pending.delete(pending);
      pending.giveUp();
    }
  }
}

interface Pending {
  readonly endsAtMs: number;
  readonly giveUp: () => void;
}

function reject(error: unknown): Promise<never> {
  // The failure as it came.
  // oxlint-disable-next-line prefer-promise-reject-errors
  return Promise.reject(error);
}
