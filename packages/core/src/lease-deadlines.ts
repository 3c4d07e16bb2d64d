import { isTerminal, type TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";

/**
 * When the lease of each open task ends, on the store's clock: for a store that learns of every change itself.
 * A finished task has no entry, so that a claim looks at open tasks alone, however many are kept.
 */
export class LeaseDeadlines {
  /** By task id. A task without a lease has the deadline `-Infinity`: it lapsed before anything began. */
  readonly #endsAtMs = new Map<string, number>();

  /** How many tasks are open. */
  get size(): number {
    return this.#endsAtMs.size;
  }

  /** After a create. */
  created({ taskId, status, lease }: LeasedTask, nowMs: number): void {
    // An id is created anew after an expiry: what was known of the old task goes.
    if (isTerminal(status)) this.#endsAtMs.delete(taskId);
    else this.#endsAtMs.set(taskId, endOf(lease, nowMs));
  }

  /**
   * After an update, or a claim, which is a patch of the lease. The deadline moves only if the patch has a
   * `lease` of its own (C25).
   */
  updated({ taskId, status, lease }: LeasedTask, patch: TaskPatch, nowMs: number): void {
    if (isTerminal(status)) this.#endsAtMs.delete(taskId);
    else if (Object.hasOwn(patch, "lease") || !this.#endsAtMs.has(taskId))
      this.#endsAtMs.set(taskId, endOf(lease, nowMs));
  }

  /** For each record that an exclusive store finds when it opens: a lease of an earlier opening has lapsed (C32). */
  reopened({ taskId, status }: LeasedTask): void {
    if (!isTerminal(status)) this.#endsAtMs.set(taskId, -Infinity);
  }

  /** After a renewal with the right token (C29). */
  renewed(taskId: string, leaseMs: number, nowMs: number): void {
    this.#endsAtMs.set(taskId, nowMs + leaseMs);
  }

  /** After a sweep. */
  deleted(taskId: string): void {
    this.#endsAtMs.delete(taskId);
  }

  /**
   * The open tasks that nobody holds now, all or those of `taskIds`, each once. A caller that takes one while
   * it walks does not meet it again.
   */
  *lapsed(nowMs: number, taskIds: Iterable<string> = this.#endsAtMs.keys()): Generator<string> {
    for (const taskId of taskIds) {
      const endsAtMs = this.#endsAtMs.get(taskId);
      if (endsAtMs !== undefined && endsAtMs <= nowMs) yield taskId;
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#endsAtMs.clear();
  }
}

/** What a deadline depends on. */
type LeasedTask = Pick<TaskRecord, "taskId" | "status" | "lease">;

function endOf(lease: TaskRecord["lease"], nowMs: number): number {
  return lease === undefined ? -Infinity : nowMs + lease.durationMs;
}
