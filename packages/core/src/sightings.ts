import type { TaskRecord } from "./task-record.ts";

/** More tasks than one instance is asked about within a lease; beyond it the oldest sighting is forgotten. */
const maxSightings = 10_000;

interface Sighting {
  readonly version: number;
  readonly sinceMs: number;
}

/**
 * For stores that cannot say whether a lease is dead: a task that shows the same version for the whole duration of its
 * lease, by this process's own monotonic clock, has no owner any more, because an owner's heartbeat would have written.
 */
export class Sightings {
  readonly #seen = new Map<string, Sighting>();
  readonly #monotonicNow: () => number;

  constructor(monotonicNow: () => number) {
    this.#monotonicNow = monotonicNow;
  }

  /** Tasks that are being watched for signs of life. */
  get size(): number {
    return this.#seen.size;
  }

  /** Notes what a read has shown; true when the task's lease is certainly dead. */
  showsNoOwner(record: TaskRecord): boolean {
    const { taskId, version, lease } = record;
    if (lease === undefined) return true;
    const nowMs = this.#monotonicNow();
    const sighting = this.#seen.get(taskId);
    if (sighting?.version === version) return nowMs - sighting.sinceMs >= lease.durationMs;
    this.#seen.delete(taskId);
    this.#seen.set(taskId, { version, sinceMs: nowMs });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > maxSightings && oldest !== undefined) this.#seen.delete(oldest);
    return false;
  }

  /** The task has ended, or is held here. */
  forget(taskId: string): void {
    this.#seen.delete(taskId);
  }
}
