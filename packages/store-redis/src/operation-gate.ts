/** Counts calls of several steps that are under way, so that closing can wait for the last of them. */
export class OperationGate {
  #underWay = 0;
  #whenIdle: (() => void) | undefined;

  /** Runs a call as one that closing waits for. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await call();
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** Resolves when no call is under way. Call it once, after the last {@link run} has begun. */
  whenIdle(): Promise<void> {
    return this.#underWay === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#whenIdle = resolve;
        });
  }
}
