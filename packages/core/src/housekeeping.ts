import type { Heartbeat } from "./heartbeat.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { Recovery } from "./recovery.ts";

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
    if (this.#heartbeat.storeIsDoubtful) return 0;
    try {
      return await this.#recovery.recover();
    } catch (error) {
      this.#heartbeat.noteFailure();
      throw error;
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
