import {
  isLongJobsError,
  isTerminal,
  reportBackgroundError,
  type TaskPatch,
  type TaskRecord,
} from "@longjobs/core";
import type { ErrorListener, TaskStore, TaskWriter } from "@longjobs/core";
import { transferErrors } from "./transfer-errors.ts";
import { elapsedOf, endedTtlMs, liveTtlMs, type ExpiryOptions } from "./transfer-expiry.ts";
import type { TransferLock, TransferLocks } from "./transfer-locks.ts";
import { isTransfer, type TransferRecord } from "./transfer-record.ts";
import { WriterLeases } from "./writer-leases.ts";

/** What {@link TransferWriters} needs. */
export interface TransferWritersOptions extends ExpiryOptions {
  readonly store: TaskStore;
  readonly writer: TaskWriter;
  readonly locks: TransferLocks;
  /** This instance. */
  readonly owner: string;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly randomId: () => string;
  readonly onError?: ErrorListener | undefined;
}

/** Gives the right to write to a transfer: the lock within this process, and the lease on the record among instances. */
export class TransferWriters {
  readonly #options: TransferWritersOptions;
  readonly #leases: WriterLeases;

  constructor(options: TransferWritersOptions) {
    this.#options = options;
    this.#leases = new WriterLeases(options.store, options.owner, options.monotonicMs);
  }

  /**
   * Takes an open transfer. A tool gets `transfer_busy` at once when there is a writer; a request waits for one that
   * does not move any more.
   *
   * @param check - Called with the record, before anything is locked and again under the lock; throws to refuse.
   */
  async take(
    transferId: string,
    caller: "tool" | "request",
    check: (record: TransferRecord) => void,
  ): Promise<TransferWriter> {
    const { locks, writer } = this.#options;
    // Whoever may not see the transfer must not learn that it is busy, nor end its writer.
    check(asTransfer(await writer.read(transferId)));
    const lock = caller === "tool" ? locks.take(transferId) : await locks.takeOver(transferId);
    const token = this.#options.randomId();
    this.#leases.held(token);
    try {
      const sentAtMs = this.#options.monotonicMs();
      let ttlMs: number | null = null;
      const record = await writer.write(transferId, (found, retrying) => {
        if (retrying && found.lease?.token === token) return undefined;
        check(asTransfer(found));
        if (!this.#leases.isFree(found)) throw transferErrors.busy();
        ttlMs = found.ttlMs;
        return this.#leasePatch(found, token);
      });
      this.#leases.forget(transferId);
      const begun = { token, sentAtMs, ttlMs, elapsedMs: elapsedOf(record, this.#options.now()) };
      return new TransferWriter(this.#options, this.#leases, lock, asTransfer(record), begun);
    } catch (error) {
      this.#leases.ended(token);
      lock.release();
      throw error;
    }
  }

  #leasePatch(record: TaskRecord, token: string): TaskPatch {
    const { owner, leaseMs, now } = this.#options;
    return {
      lease: { owner, token, durationMs: leaseMs },
      ttlMs: liveTtlMs(elapsedOf(record, now()), this.#options),
    };
  }
}

/** How a writer began. */
interface Begun {
  /** Of its lease. */
  readonly token: string;
  /** When its lease was asked for, on the monotonic clock. */
  readonly sentAtMs: number;
  readonly elapsedMs: number;
  /** The time to live of the transfer before. */
  readonly ttlMs: number | null;
}

/** The right to write to one transfer, until {@link TransferWriter.end}. */
export class TransferWriter {
  /** Aborted when this writer has to stop: another one wants the transfer, or has it already. */
  readonly signal: AbortSignal;
  readonly #options: TransferWritersOptions;
  readonly #leases: WriterLeases;
  readonly #lock: TransferLock;
  readonly #begun: Begun;
  readonly #lost = new AbortController();
  readonly #staged = new Set<Promise<unknown>>();
  #renewedAtMs: number;
  #renewing: Promise<void> | undefined;
  #failure: unknown;
  #record: TransferRecord;

  constructor(
    options: TransferWritersOptions,
    leases: WriterLeases,
    lock: TransferLock,
    record: TransferRecord,
    begun: Begun,
  ) {
    this.#options = options;
    this.#leases = leases;
    this.#lock = lock;
    this.signal = AbortSignal.any([lock.stopped, this.#lost.signal]);
    this.#record = record;
    this.#begun = begun;
    this.#renewedAtMs = begun.sentAtMs;
  }

  /** As it was at the last write of this writer. */
  get record(): TransferRecord {
    return this.#record;
  }

  /** Remembers a write to the staging: the lock is not released before it has settled. */
  stage<T>(written: Promise<T>): Promise<T> {
    this.#staged.add(written);
    return written;
  }

  /**
   * Before bytes are written. A lease that is old is renewed meanwhile; one that has lapsed, first.
   *
   * @throws `transfer_busy` when another instance has taken the transfer over; what the store rejects with.
   */
  async beforeBytes(): Promise<void> {
    this.#lock.touch();
    const { leaseMs } = this.#options;
    if (this.#leaseAgeMs() >= leaseMs / 3) this.#renewing ??= this.#renew();
    if (this.#leaseAgeMs() >= leaseMs) await this.#renewing;
    this.#lost.signal.throwIfAborted();
    if (this.#leaseAgeMs() >= leaseMs) throw this.#failure as Error;
  }

  /** Renews by itself while something runs that moves no bytes, such as a flush. The returned function ends that. */
  keepAlive(): () => void {
    const timer = setInterval(() => {
      this.#lock.touch();
      this.#renewing ??= this.#renew();
      // More often than a holder goes stale: hashing and flushing are work too.
    }, this.#options.leaseMs / 6);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** Writes to the record under the lease. @throws `transfer_busy` when it is lost. */
  async update(plan: (record: TransferRecord) => TaskPatch): Promise<void> {
    this.#record = asTransfer(
      await this.#options.writer.write(this.#record.taskId, (found) => {
        this.#assertHeld(found);
        return plan(asTransfer(found));
      }),
    );
  }

  /**
   * Ends the right, with a last change of the record. Bytes that are still being staged are waited for.
   *
   * @throws what the store rejects with; the lock is released all the same.
   */
  async end(change: (record: TransferRecord) => TaskPatch = () => ({})): Promise<TransferRecord> {
    await Promise.allSettled(this.#staged);
    await this.#renewing;
    try {
      const record = await this.#options.writer.write(this.#record.taskId, (found, retrying) => {
        const patch = change(asTransfer(found));
        const ends = patch.status !== undefined && isTerminal(patch.status);
        // A failed write may have happened all the same: it took the lease off, or ended the transfer.
        const done = ends ? found.finishedBy === this.#begun.token : found.lease === undefined;
        if (retrying && done) return undefined;
        this.#assertHeld(found);
        return {
          lease: undefined,
          ttlMs: endedTtlMs(elapsedOf(found, this.#options.now()), this.#begun, this.#options),
          ...patch,
          ...(ends ? { finishedBy: this.#begun.token } : {}),
        };
      });
      return asTransfer(record);
    } finally {
      this.#leases.ended(this.#begun.token);
      this.#lock.release();
    }
  }

  /** Never rejects: whoever writes next looks at the outcome. */
  async #renew(): Promise<void> {
    const sentAtMs = this.#options.monotonicMs();
    try {
      await this.update((found) => ({
        lease: found.lease,
        ttlMs: liveTtlMs(elapsedOf(found, this.#options.now()), this.#options),
      }));
      this.#renewedAtMs = sentAtMs;
    } catch (error) {
      // The record is somebody else's, or gone: no byte may be written any more. An outage of the store may pass.
      if (isLongJobsError(error, "transfer_busy") || isLongJobsError(error, "unknown_task"))
        this.#lost.abort(transferErrors.leaseLost());
      else {
        this.#failure = error;
        reportBackgroundError(error, this.#options.onError);
      }
    } finally {
      this.#renewing = undefined;
    }
  }

  #leaseAgeMs(): number {
    return this.#options.monotonicMs() - this.#renewedAtMs;
  }

  #assertHeld(record: TaskRecord): void {
    if (record.lease?.token !== this.#begun.token) throw transferErrors.leaseLost();
  }
}

/** @throws `unknown_transfer` for a record that this version cannot read. */
export function asTransfer(record: TaskRecord): TransferRecord {
  if (!isTransfer(record)) throw transferErrors.unknown();
  return record;
}
