import type { TaskRecord } from "./task-record.ts";

/**
 * A change to a record: own enumerable string keys. A key whose value is `undefined` deletes the field; a
 * field that the patch does not name stays as it is.
 */
export type TaskPatch = {
  readonly [Field in Exclude<keyof TaskRecord, "taskId" | "version" | "createdAt">]?:
    | TaskRecord[Field]
    | undefined;
};

/**
 * Where tasks are kept. The rules are numbered in `docs/reference/contract.md`; the package
 * `@longjobs/conformance` checks each of them.
 *
 * Every method may reject with `store_closed` after `close()` (C18) and with `store_unavailable`, after which
 * the write may or may not have happened: the engine reads again before it decides.
 */
export interface TaskStore {
  /**
   * Keeps a new record. Durable before it resolves (C1, C19).
   *
   * Rejects with `task_exists` when the id is taken by a task that has not expired (C2) and with
   * `record_too_large` (C20); nothing has changed then. Not retryable as it is.
   */
  create(record: TaskRecord): Promise<void>;

  /** The record as it is now, or `undefined` when the id is unknown or expired (C4, C5). Changes nothing. */
  get(taskId: string): Promise<TaskRecord | undefined>;

  /**
   * Applies a patch if, and only if, the stored version is `expectedVersion` (C8). Durable before it resolves,
   * to the new version: `expectedVersion + 1`.
   *
   * Rejects with `version_conflict` (C9), `unknown_task` (C10) and `record_too_large` (C20); nothing has
   * changed then. After a conflict, read again and decide again.
   */
  update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number>;

  /** Deletes expired records and resolves to how many; never hands one out (C17). May be called at any time. */
  sweep(): Promise<number>;

  /** Releases what the store opened. Idempotent; a pending write is finished or rejected first (C18). */
  close(): Promise<void>;
}

/** An optional capability: hints that a task changed. Losing a hint costs time, never an answer (C24). */
export interface WatchableTaskStore {
  /**
   * Calls `onChange` after a change of this task, by anyone. Hints may be merged or repeated. Resolves to a
   * function that ends the watch; calling it twice is harmless.
   */
  watch(taskId: string, onChange: () => void): Promise<() => Promise<void>>;
}

/**
 * An optional mark of a store whose backing data belong to this process alone while it is open. A task whose
 * owner does not live in this process then has no owner at all.
 */
export interface ExclusiveTaskStore {
  readonly exclusive: true;
}

/** True when the store can watch tasks. */
export function canWatch(store: TaskStore): store is TaskStore & WatchableTaskStore {
  return typeof (store as Partial<WatchableTaskStore>).watch === "function";
}

/** True when the store belongs to this process alone. */
export function isExclusive(store: TaskStore): store is TaskStore & ExclusiveTaskStore {
  return (store as Partial<ExclusiveTaskStore>).exclusive === true;
}
