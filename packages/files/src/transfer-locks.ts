import { transferErrors } from "./transfer-errors.ts";

/** What {@link TransferLocks} needs. */
export interface TransferLocksOptions {
  /** A holder whose last byte is older than this, in milliseconds, may be asked to stop. */
  readonly staleWriterMs: number;
  /** How long a holder that was asked to stop is waited for, in milliseconds. */
  readonly stopGraceMs: number;
  /** Milliseconds that never go back. */
  readonly monotonicMs: () => number;
}

/** The right of one caller in this process to write to a transfer. */
export interface TransferLock {
  /** Aborted when another writer wants the transfer and this one has not moved for a while. */
  readonly stopped: AbortSignal;
  /** Says that bytes have moved. */
  touch(): void;
  /** Ends the right. Call it only after the staged write has settled. */
  release(): void;
}

interface Holder extends TransferLock {
  readonly stop: () => void;
  readonly released: Promise<void>;
  movedAtMs: number;
}

/**
 * Who writes to which transfer in this process: one at a time, whether it came by a tool or by TUS. Readers take no
 * lock. A tool never waits and never ends a holder; a request may ask one to stop whose last byte is old.
 */
export class TransferLocks {
  readonly #options: TransferLocksOptions;
  readonly #holders = new Map<string, Holder>();

  constructor(options: TransferLocksOptions) {
    this.#options = options;
  }

  /** Transfers with a writer. */
  get size(): number {
    return this.#holders.size;
  }

  /** True while somebody in this process writes to the transfer. */
  isHeld(transferId: string): boolean {
    return this.#holders.has(transferId);
  }

  /** Takes the lock at once. @throws `transfer_busy` */
  take(transferId: string): TransferLock {
    if (this.#holders.has(transferId)) throw transferErrors.busy();
    return this.#hold(transferId);
  }

  /**
   * Takes the lock; a holder whose last byte is old is asked to stop, and is waited for.
   *
   * @throws `transfer_busy` while the holder is at work, or when it does not stop in time.
   */
  async takeOver(transferId: string): Promise<TransferLock> {
    const deadlineMs = this.#options.monotonicMs() + this.#options.stopGraceMs;
    for (;;) {
      const holder = this.#holders.get(transferId);
      if (holder === undefined) return this.#hold(transferId);
      const nowMs = this.#options.monotonicMs();
      if (nowMs - holder.movedAtMs < this.#options.staleWriterMs) throw transferErrors.busy();
      holder.stop();
      if (!(await settlesWithin(holder.released, deadlineMs - nowMs))) throw transferErrors.busy();
    }
  }

  /** Asks every holder to stop: the process is shutting down. */
  stopAll(): void {
    for (const holder of this.#holders.values()) holder.stop();
  }

  /** Resolves when nobody holds anything any more. */
  async settled(): Promise<void> {
    await Promise.all([...this.#holders.values()].map(({ released }) => released));
  }

  #hold(transferId: string): TransferLock {
    const { monotonicMs } = this.#options;
    const stopping = new AbortController();
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const holder: Holder = {
      stopped: stopping.signal,
      released,
      movedAtMs: monotonicMs(),
      stop: () => stopping.abort(transferErrors.busy()),
      touch: () => {
        holder.movedAtMs = monotonicMs();
      },
      release: () => {
        if (this.#holders.get(transferId) === holder) this.#holders.delete(transferId);
        resolve();
      },
    };
    this.#holders.set(transferId, holder);
    return holder;
  }
}

async function settlesWithin(settled: Promise<void>, waitMs: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, waitMs), false);
  });
  try {
    return await Promise.race([settled.then(() => true), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
