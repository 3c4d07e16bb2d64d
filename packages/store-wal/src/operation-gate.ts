/** Counts calls that are under way, so that closing can wait for them. */
export class OperationGate {
  #count = 0;
  #idle: (() => void) | undefined;

  /** Call {@link leave} when the call is over, however it ends. */
  enter(): void {
    this.#count += 1;
  }

  leave(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#idle?.();
  }

  async run<T>(operation: () => Promise<T>): Promise<T> {
    this.enter();
    try {
      return await operation();
    } finally {
      this.leave();
    }
  }

  /** Resolves when no call is under way. */
  async whenIdle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
  }
}
