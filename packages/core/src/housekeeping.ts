import type { Heartbeat } from "./heartbeat.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { Recovery } from "./recovery.ts";
import { canLease } from "./task-store.ts";

/** A reserved id: no task can have it. */
const probedId = "longjobs.probe";

/** What an engine does by itself: it renews its leases, goes on with tasks whose process is gone, and sweeps expired ones. */
export class Housekeeping {
  readonly #options: ResolvedLifecycleOptions;
  readonly #heartbeat: Heartbeat;
  readonly #recovery: Recovery;
  readonly #stops: (() => void)[] = [];
  #recovering: Promise<number> | undefined;

  constructor(options: ResolvedLifecycleOptions, heartbeat: Heartbeat, recovery: Recovery) {
    this.#options = options;
    this.#heartbeat = heartbeat;
    this.#recovery = recovery;
  }

  /** Starts the timers, with the first use of the engine: a constructor starts none. Idempotent. */
  start(): void {
    if (this.#stops.length > 0) return;
    const { leaseMs, sweepIntervalMs, store } = this.#options;
    this.#every(Math.ceil(leaseMs / 3), () => this.#beat());
    if (sweepIntervalMs !== null) this.#every(sweepIntervalMs, () => store.sweep());
  }

  /** Ends the timers; resolves when no renewal is under way, and nothing that was claimed is left to be gone on with. */
  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    await Promise.all([this.#heartbeat.stop(), this.#recovering?.catch(ignore)]);
  }

  /**
   * Renews first: what this instance still holds is never taken for dead. For one lease after a failure of the store nothing
   * is claimed, because whoever is behind such a store may be slow, not dead. Calls at the same time are one.
   */
  recover(): Promise<number> {
    this.#recovering ??= this.#recoverNow().finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  async #recoverNow(): Promise<number> {
    await this.#heartbeat.beat();
    if (this.#heartbeat.storeIsDoubtful) {
      await this.#probe();
      return 0;
    }
    try {
      return await this.#recovery.recover();
    } catch (error) {
      this.#heartbeat.noteFailure();
      throw error;
    }
  }

  /**
   * Sees whether the store is still away. Without that the last failure could be nearly a lease old when the store comes back,
   * and a task be taken whose worker is about to write its result.
   */
  async #probe(): Promise<void> {
    const { leaseMs, reportError, runner, store, timers } = this.#options;
    // Who takes nothing need not know.
    if (runner === undefined || !canLease(store)) return;
    try {
      if (!(await timers.within(store.get(probedId), leaseMs / 4))) this.#heartbeat.noteFailure();
    } catch (error) {
      this.#heartbeat.noteFailure();
      reportError(error);
    }
  }

  /** A recovery that is under way must not hold up the next renewal. */
  #beat(): Promise<unknown> {
    return this.#recovering === undefined ? this.recover() : this.#heartbeat.beat();
  }

  /** A store that throws instead of rejecting must not end the process from within a timer. */
  #every(intervalMs: number, work: () => Promise<unknown>): void {
    const run = async (): Promise<void> => {
      try {
        await work();
      } catch (error) {
        this.#options.reportError(error);
      }
    };
    this.#stops.push(this.#options.timers.repeat(() => void run(), intervalMs));
  }
}

/** Whoever asked for the recovery hears of its failure. */
function ignore(): void {}
