import { LongJobsError } from "./longjobs-error.ts";

/** The errors of the store contract, so that every store says the same thing in the same words. */
export const storeErrors = {
  taskExists: (taskId: string): LongJobsError =>
    new LongJobsError("task_exists", `Task ${taskId} exists already; create a task under another id.`),

  unknownTask: (taskId: string): LongJobsError =>
    new LongJobsError("unknown_task", `Task ${taskId} is unknown or has expired.`),

  versionConflict: (taskId: string, expected: number, actual: number): LongJobsError =>
    new LongJobsError(
      "version_conflict",
      `Task ${taskId} is at version ${actual}, not ${expected}; read it again and repeat the change.`,
      { retryable: true, partial: { expectedVersion: expected, actualVersion: actual } },
    ),

  recordTooLarge: (taskId: string, bytes: number, maxBytes: number): LongJobsError =>
    new LongJobsError(
      "record_too_large",
      `The record of task ${taskId} would take ${bytes} bytes; the limit is ${maxBytes}. Store large values elsewhere and keep a reference.`,
      { partial: { bytes, maxBytes } },
    ),

  storeClosed: (): LongJobsError =>
    new LongJobsError("store_closed", "The store is closed; open it again before using it."),
};
