/** Counts calls under way, so that closing can wait for the last of them. */
export class OperationGate {
  #underWay = 0;
  #whenIdle: (() => void) | undefined;

  /** Runs a call as one that closing waits for. */
  run<T>(call: () => Promise<T>): Promise<T> {
    this.#underWay += 1;
    const outcome = call();
    // Two functions that are there already, and a promise that nobody sees: this is on the way of every call.
    outcome.then(this.#leave, this.#leave);
    return outcome;
  }

  /** Resolves when no call is under way. Call it once, after the last {@link run} has begun. */
  whenIdle(): Promise<void> {
    return this.#underWay === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#whenIdle = resolve;
        });
  }

  readonly #leave = (): void => {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#whenIdle?.();
  };
}
