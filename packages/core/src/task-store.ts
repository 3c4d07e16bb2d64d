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

/** Which tasks `claim` may take, and how many. */
export interface ClaimOptions {
  /** The most tasks to take; a positive integer. */
  readonly limit: number;
  /** Only tasks whose `work.tool` is one of these; a task whose cancel was requested is taken all the same. @default any */
  readonly tools?: readonly string[] | undefined;
  /** Only these tasks. @default any */
  readonly taskIds?: readonly string[] | undefined;
}

/** A lease by the task it is on and the token that proves it. */
export interface HeldLease {
  readonly taskId: string;
  readonly token: string;
}

/**
 * An optional capability, both methods or none: the store decides, on its own clock, that a lease is dead. The
 * deadline is the store's: it is set by a `create` or a patch with a `lease` of its own, by `claim` and by
 * `renew`, and nothing else moves it (C25).
 */
export interface LeasingTaskStore {
  /**
   * Takes open tasks that nobody holds: gives each a `lease` with this owner and a fresh random token, which adds
   * one to the version, and resolves to the records as they are then (C25 to C28). No two calls take one task.
   *
   * Rejects with `TypeError` or `RangeError` for arguments that make no sense (C31); nothing has changed then.
   * After `store_unavailable` some may have been taken: their leases lapse.
   */
  claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]>;

  /**
   * Moves the deadline of each lease to `leaseMs` from now, and resolves to the ids of those that are lost.
   * Changes no record (C29, C30). May be repeated; a lease that lapsed and that nobody took is renewed.
   */
  renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]>;
}

/**
 * An optional mark of a store whose backing data belong to this process alone while it is open. A task whose
 * owner does not live in this process then has no owner at all, and a lease of an earlier opening has lapsed (C32).
 */
export interface ExclusiveTaskStore {
  readonly exclusive: true;
}

/** True when the store can watch tasks. */
export function canWatch(store: TaskStore): store is TaskStore & WatchableTaskStore {
  return typeof (store as Partial<WatchableTaskStore>).watch === "function";
}

/** True when the store can claim tasks and renew leases. */
export function canLease(store: TaskStore): store is TaskStore & LeasingTaskStore {
  const { claim, renew } = store as Partial<LeasingTaskStore>;
  return typeof claim === "function" && typeof renew === "function";
}

/** True when the store belongs to this process alone. */
export function isExclusive(store: TaskStore): store is TaskStore & ExclusiveTaskStore {
  return (store as Partial<ExclusiveTaskStore>).exclusive === true;
}
