import { isLongJobsError } from "./longjobs-error.ts";
import { jsonEquals } from "./canonical-json.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { TaskChanges } from "./task-changes.ts";
import { isTerminal, type TaskRecord } from "./task-record.ts";
import { canWatch } from "./task-store.ts";
import { toDetailedTask, type DetailedTask } from "./task-view.ts";

/** What a feed needs of its engine. */
export interface TaskFeedParts {
  readonly changes: TaskChanges;
  readonly options: Pick<
    ResolvedLifecycleOptions,
    "leaseMs" | "reportError" | "store" | "timers" | "waitPollMs"
  >;
  /** Reads a task as the follower may see it. @throws `unknown_task` */
  readonly read: (taskId: string) => Promise<TaskRecord>;
  readonly onChange: () => void;
}

interface Interest {
  readonly unsubscribe: () => void;
  /** The version that was looked at last. */
  seen?: number;
  /** The state that was taken last. */
  taken?: DetailedTask;
}

/**
 * The states of some tasks, one at a time, for as long as they last: first each as it is, then each as it changes, by whichever
 * engine. A state is read when it is taken, so a reader that is slow skips what lies between, and costs the memory
 * of one state without a result for each task. A task that has ended, or is gone, has nothing more to say.
 */
export class TaskFeed {
  /** The tasks that are there for the follower, in the order they were asked for. */
  readonly taskIds: readonly string[];
  readonly #parts: TaskFeedParts;
  readonly #interests = new Map<string, Interest>();
  readonly #changed = new Set<string>();
  #stopPolling: (() => void) | undefined;
  #failing = false;

  constructor(taskIds: readonly string[], parts: TaskFeedParts) {
    this.taskIds = taskIds;
    this.#parts = parts;
    for (const taskId of taskIds) {
      const unsubscribe = parts.changes.subscribe(taskId, () => this.#mark([taskId]), false);
      this.#interests.set(taskId, { unsubscribe });
      this.#changed.add(taskId);
    }
    if (taskIds.length > 0) this.#pollAfter(parts.options.waitPollMs);
  }

  /** Whether a task may have changed since it was taken. */
  get hasChanges(): boolean {
    return this.#changed.size > 0;
  }

  /** Whether nothing will ever come: every task has ended, or is gone, and its last state was taken. */
  get isOver(): boolean {
    return this.#interests.size === 0;
  }

  /** Reads a task that may have changed; `undefined` if it has not, or cannot be read now. Take one at a time. Never rejects. */
  async take(): Promise<DetailedTask | undefined> {
    const [taskId] = this.#changed;
    if (taskId === undefined) return undefined;
    this.#changed.delete(taskId);
    const record = await this.#look(taskId);
    const interest = this.#interests.get(taskId);
    if (record === undefined || interest === undefined || record.version === interest.seen) return undefined;
    interest.seen = record.version;
    if (isTerminal(record.status)) this.#drop(taskId);
    const task = toDetailedTask(record);
    // Much that is written is not shown, such as a lease.
    if (task.status === interest.taken?.status && jsonEquals(task, interest.taken)) return undefined;
    interest.taken = task;
    return task;
  }

  /** Ends it: nothing is listened to, looked for or told any more. Idempotent. */
  close(): void {
    for (const taskId of this.#interests.keys()) this.#drop(taskId);
  }

  async #look(taskId: string): Promise<TaskRecord | undefined> {
    try {
      const record = await this.#parts.read(taskId);
      this.#failing = false;
      return record;
    } catch (error) {
      if (isLongJobsError(error, "unknown_task")) this.#drop(taskId);
      // Looked for again with the next poll; one report is enough for a store that is away.
      else if (!this.#failing) {
        this.#failing = true;
        this.#parts.options.reportError(error);
      }
      return undefined;
    }
  }

  /** A store that tells of changes is looked at for hints that were lost: more rarely the longer it lasts. */
  #pollAfter(pollMs: number): void {
    const { leaseMs, store, timers, waitPollMs } = this.#parts.options;
    const longestMs = canWatch(store) ? Math.max(waitPollMs, leaseMs) : waitPollMs;
    this.#stopPolling = timers.later(() => {
      this.#pollAfter(Math.min(pollMs * 2, longestMs));
      this.#mark(this.#interests.keys());
    }, pollMs);
  }

  #mark(taskIds: Iterable<string>): void {
    for (const taskId of taskIds) this.#changed.add(taskId);
    this.#parts.onChange();
  }

  #drop(taskId: string): void {
    this.#interests.get(taskId)?.unsubscribe();
    this.#interests.delete(taskId);
    this.#changed.delete(taskId);
    if (this.#interests.size === 0) this.#stopPolling?.();
  }
}
