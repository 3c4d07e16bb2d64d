import type { Schedule } from "../../src/index.ts";

interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** One clock for several processes, each with timers of its own, which end with it. */
export class VirtualTime {
  #nowMs = 0;
  #order = 0;
  readonly #entries = new Set<Entry>();

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Timers that have not fired and were not cancelled. */
  get pending(): number {
    return this.#entries.size;
  }

  /** The timers of one process: `kill` ends them all, and none can be started any more. */
  process(): { readonly schedule: Schedule; readonly kill: () => void } {
    const own = new Set<Entry>();
    let alive = true;
    const schedule: Schedule = (run, delayMs) => {
      if (!alive) return () => undefined;
      const entry: Entry = {
        atMs: this.#nowMs + Math.max(1, delayMs),
        order: (this.#order += 1),
        run: () => {
          cancel();
          run();
        },
      };
      const cancel = (): void => {
        own.delete(entry);
        this.#entries.delete(entry);
      };
      own.add(entry);
      this.#entries.add(entry);
      return cancel;
    };
    const kill = (): void => {
      alive = false;
      for (const entry of own) this.#entries.delete(entry);
      own.clear();
    };
    return { schedule, kill };
  }

  /** Moves the clock on, and calls `afterInstant` whenever everything of one moment has been done. */
  async advance(ms: number, afterInstant: () => Promise<void>): Promise<void> {
    const endsAtMs = this.#nowMs + ms;
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.atMs > endsAtMs) break;
      this.#nowMs = next.atMs;
      next.run();
      const isLastOfInstant = (this.#next()?.atMs ?? Infinity) > this.#nowMs;
      if (isLastOfInstant) await afterInstant();
    }
    this.#nowMs = endsAtMs;
    await afterInstant();
  }

  #next(): Entry | undefined {
    let next: Entry | undefined;
    for (const entry of this.#entries) {
      if (
        next === undefined ||
        entry.atMs < next.atMs ||
        (entry.atMs === next.atMs && entry.order < next.order)
      )
        next = entry;
    }
    return next;
  }
}
