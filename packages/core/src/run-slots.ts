/** How many handlers may run at once in this process, and who waits for a place. First come, first served. */
export class RunSlots {
  readonly #limit: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  /** @param limit `null` for no limit. */
  constructor(limit: number | null) {
    this.#limit = limit ?? Infinity;
  }

  /** How many more may begin now. */
  get free(): number {
    return Math.max(0, this.#limit - this.#taken - this.#waiting.size);
  }

  /** Runs that wait for a place. */
  get queued(): number {
    return this.#waiting.size;
  }

  /** True when a place was free: it is taken then, and must be given back with {@link leave}. */
  tryEnter(): boolean {
    if (this.free < 1) return false;
    this.#taken += 1;
    return true;
  }

  /** Resolves to true with a place, or to false without one when `signal` is aborted first. */
  async enter(signal: AbortSignal): Promise<boolean> {
    if (this.tryEnter()) return true;
    if (signal.aborted) return false;
    return new Promise<boolean>((resolve) => {
      const proceed = (): void => {
        signal.removeEventListener("abort", giveUp);
        this.#taken += 1;
        resolve(true);
      };
      const giveUp = (): void => {
        this.#waiting.delete(proceed);
        resolve(false);
      };
      this.#waiting.add(proceed);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** Gives a place back. */
  leave(): void {
    this.#taken -= 1;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next();
  }
}
