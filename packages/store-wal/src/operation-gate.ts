/** Counts calls that are under way, so that closing can wait for them. */
export class OperationGate {
  #count = 0;
  #idle: (() => void) | undefined;

  async run<T>(operation: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await operation();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) this.#idle?.();
    }
  }

  /** Resolves when no call is under way. */
  async whenIdle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
  }
}
