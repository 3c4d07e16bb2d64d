import { isExclusive, liveOwners, type TaskRecord, type TaskStore } from "@longjobs/core";

/** Enough for any process; beyond it the oldest observations are forgotten, which only costs time. */
const maxObserved = 10_000;

/** What a lease looked like when it was seen last, and since when it has looked so. */
interface Observation {
  readonly version: number;
  readonly sinceMs: number;
}

/**
 * Decides whether the lease on a transfer record is dead. A live writer renews by an ordinary update, so a record that
 * has not changed for as long as its lease lasts, seen on this process's own monotonic clock, has no writer any more.
 * On a store that belongs to this process alone, an owner that does not live here is dead at once.
 */
export class WriterLeases {
  readonly #store: TaskStore;
  readonly #owner: string;
  readonly #monotonicMs: () => number;
  readonly #tokens = new Set<string>();
  readonly #observed = new Map<string, Observation>();

  constructor(store: TaskStore, owner: string, monotonicMs: () => number) {
    this.#store = store;
    this.#owner = owner;
    this.#monotonicMs = monotonicMs;
  }

  /** Before a lease with this token is written. */
  held(token: string): void {
    this.#tokens.add(token);
  }

  /** When the writer has ended, whether its lease could be taken off the record or not. */
  ended(token: string): void {
    this.#tokens.delete(token);
  }

  /** True when nobody holds the record. The answer for a living stranger changes with time: ask again. */
  isFree(record: TaskRecord): boolean {
    const { lease, taskId, version } = record;
    if (lease === undefined) return true;
    if (lease.owner === this.#owner) return !this.#tokens.has(lease.token);
    if (isExclusive(this.#store) && !liveOwners().has(lease.owner)) return true;
    const nowMs = this.#monotonicMs();
    const seen = this.#observed.get(taskId);
    if (seen?.version === version) return nowMs - seen.sinceMs >= lease.durationMs;
    this.#observed.delete(taskId);
    this.#observed.set(taskId, { version, sinceMs: nowMs });
    if (this.#observed.size > maxObserved) this.#forgetOldest();
    return false;
  }

  /** After the record was taken, or found without a stranger's lease. */
  forget(taskId: string): void {
    this.#observed.delete(taskId);
  }

  #forgetOldest(): void {
    for (const taskId of this.#observed.keys()) {
      this.#observed.delete(taskId);
      return;
    }
  }
}
