import { isLongJobsError } from "./longjobs-error.ts";
import { storeErrors } from "./store-errors.ts";
import { applyTaskPatch } from "./task-patch.ts";
import type { TaskRecord } from "./task-record.ts";
import type { TaskPatch, TaskStore } from "./task-store.ts";

/**
 * Decides what to write, given the record as it is now: a patch, or `undefined` when nothing needs writing.
 * Throws to refuse. May be asked several times. `retrying` is true after a rejected write, which may have
 * happened all the same: only then is a state that equals ours taken for our own write.
 */
export type WritePlan = (record: TaskRecord, retrying: boolean) => TaskPatch | undefined;

/** What a {@link TaskWriter} needs. */
export interface TaskWriterOptions {
  readonly store: TaskStore;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
  /** The one kind of record that is read and written; absent for tasks. */
  readonly kind?: string;
}

/** Forty jittered waits of at most 50 ms: two seconds of constant conflict before a caller hears of it. */
const maxConflicts = 40;
const maxBackoffMs = 50;

/**
 * The one write path: read, guard, stamp, compare-and-swap, and on a conflict again. Writes of this process
 * to one task queue up, so that they never conflict with each other.
 */
export class TaskWriter {
  readonly #options: TaskWriterOptions;
  readonly #onWritten: (record: TaskRecord) => void;
  readonly #tails = new Map<string, Promise<void>>();

  constructor(options: TaskWriterOptions, onWritten: (record: TaskRecord) => void) {
    this.#options = options;
    this.#onWritten = onWritten;
  }

  /** Tasks with a write under way or queued. */
  get size(): number {
    return this.#tails.size;
  }

  /** The record of a task. @throws `unknown_task`, also for records of another kind. */
  async read(taskId: string): Promise<TaskRecord> {
    const record = await this.#options.store.get(taskId);
    if (record === undefined || record.kind !== this.#options.kind) throw storeErrors.unknownTask(taskId);
    return record;
  }

  /** Creates a record. A rejected create that happened all the same is recognised by its lease token. */
  async create(record: TaskRecord): Promise<TaskRecord> {
    try {
      await this.#options.store.create(record);
    } catch (error) {
      const found = await this.#readAfter(error, record.taskId);
      if (found?.lease?.token !== record.lease?.token) throw error;
    }
    this.#onWritten(record);
    return record;
  }

  /** Runs a plan after every earlier write to the same task. Resolves to the record as it then is. */
  write(taskId: string, plan: WritePlan): Promise<TaskRecord> {
    return this.inTurn(taskId, () => this.#writeNow(taskId, plan));
  }

  /** Runs a job after every earlier write and job of the same task. A job must not wait for another of its task. */
  inTurn<Value>(taskId: string, job: () => Promise<Value>): Promise<Value> {
    const tail = this.#tails.get(taskId) ?? Promise.resolve();
    const done = tail.then(job);
    const settled = done.then(ignore, ignore);
    this.#tails.set(taskId, settled);
    void settled.then(() => {
      if (this.#tails.get(taskId) === settled) this.#tails.delete(taskId);
    });
    return done;
  }

  async #writeNow(taskId: string, plan: WritePlan): Promise<TaskRecord> {
    let record = await this.read(taskId);
    let patch = plan(record, false);
    for (let conflicts = 0; patch !== undefined;) {
      const stamped: TaskPatch = isOfLease(patch) ? patch : { ...patch, lastUpdatedAt: this.#stamp(record) };
      try {
        await this.#options.store.update(taskId, stamped, record.version);
        const written = applyTaskPatch(record, stamped);
        this.#onWritten(written);
        return written;
      } catch (error) {
        const conflict = isLongJobsError(error, "version_conflict");
        if (conflict && (conflicts += 1) > maxConflicts) throw error;
        if (conflict) await this.#backOff(conflicts);
        const found = await this.#readAfter(error, taskId);
        if (found === undefined) throw conflict ? storeErrors.unknownTask(taskId) : error;
        record = found;
        patch = plan(record, true);
        // A driver may report a failure, or even a conflict with itself, after the write was committed.
        if (patch === undefined) this.#onWritten(record);
        else if (!conflict) throw error;
      }
    }
    return record;
  }

  /**
   * Reads again after a failed write. When that fails too, the first failure is the one to tell, unless it is
   * one that only the record could have explained: a conflict may be with our own write.
   */
  async #readAfter(failure: unknown, taskId: string): Promise<TaskRecord | undefined> {
    try {
      return await this.#options.store.get(taskId);
    } catch (readFailure) {
      const unexplained =
        isLongJobsError(failure, "version_conflict") || isLongJobsError(failure, "task_exists");
      throw unexplained ? readFailure : failure;
    }
  }

  /** Now, but never before the last update: `lastUpdatedAt` does not go back when a clock does. */
  #stamp(record: TaskRecord): string {
    return new Date(Math.max(this.#options.now(), Date.parse(record.lastUpdatedAt))).toISOString();
  }

  async #backOff(conflicts: number): Promise<void> {
    const delayMs = this.#options.random() * Math.min(2 ** conflicts, maxBackoffMs);
    await new Promise<void>((resolve) => {
      setTimeout(resolve, delayMs);
    });
  }
}

/** Who holds a task is no change of it that a client would see, as `renew` and `claim` have it too. */
function isOfLease(patch: TaskPatch): boolean {
  return Object.keys(patch).every((name) => name === "lease");
}

/** The caller holds the promise that rejects; this one only keeps the order. */
function ignore(): void {}
