/** A command that has had no answer yet. */
interface Pending {
  readonly endsAtMs: number;
  readonly fail: (error: Error) => void;
  readonly late: () => Error;
  isSettled: boolean;
  next: Pending | undefined;
}

/**
 * A time limit for every command. All have the same one, so the first to begin is the first to be late: a list in
 * order of beginning and one timer do for any number.
 */
export class CommandDeadlines {
  readonly #limitMs: number;
  #first: Pending | undefined;
  #last: Pending | undefined;
  #timer: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /**
   * What `read` makes of the reply to a command, or `late()` when there is none in time.
   *
   * @param onFailure - What to resolve to instead of a failure.
   */
  within<Reply, Value>(
    command: Promise<Reply>,
    late: () => Error,
    read: (reply: Reply) => Value,
    onFailure: (error: unknown) => Promise<Value>,
  ): Promise<Value> {
    return new Promise<Value>((resolve, fail) => {
      const pending = this.#begin(fail, late);
      command.then(
        (reply) => {
          if (!this.#settle(pending)) return;
          try {
            resolve(read(reply));
          } catch (error) {
            fail(error);
          }
        },
        (error: unknown) => {
          // Who was told that it is late is not told again.
          if (pending.isSettled) return;
          // First what comes instead: until it has begun this command is under way.
          resolve(onFailure(error));
          this.#settle(pending);
        },
      );
    });
  }

  /** Resolves when every command has been answered, or is late. Call it once, after the last has begun. */
  whenIdle(): Promise<void> {
    return this.#first === undefined
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#onIdle = resolve;
        });
  }

  #begin(fail: (error: Error) => void, late: () => Error): Pending {
    const endsAtMs = performance.now() + this.#limitMs;
    const pending: Pending = { endsAtMs, fail, late, isSettled: false, next: undefined };
    if (this.#last === undefined) this.#first = pending;
    else this.#last.next = pending;
    this.#last = pending;
    if (this.#timer === undefined) this.#timer = this.#wait(this.#limitMs);
    return pending;
  }

  /** False when it was settled already. What is settled leaves the list when nothing before it is open. */
  #settle(pending: Pending): boolean {
    if (pending.isSettled) return false;
    pending.isSettled = true;
    while (this.#first?.isSettled === true) this.#first = this.#first.next;
    if (this.#first === undefined) {
      this.#last = undefined;
      this.#onIdle?.();
    }
    return true;
  }

  #wait(delayMs: number): NodeJS.Timeout {
    // What a process lives on is its connection: a deadline alone does not keep it.
    return setTimeout(() => this.#check(), Math.max(1, Math.ceil(delayMs))).unref();
  }

  #check(): void {
    this.#timer = undefined;
    for (let first = this.#first; first !== undefined; first = this.#first) {
      const leftMs = first.endsAtMs - performance.now();
      if (leftMs > 0) {
        this.#timer = this.#wait(leftMs);
        return;
      }
      this.#settle(first);
      first.fail(first.late());
    }
  }
}
