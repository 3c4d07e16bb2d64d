import { LongJobsError } from "@longjobs/core";

/** What this store says besides the errors of the contract, in one place. */
export const walErrors = {
  corrupt: (subject: string, place: string, kept: string | undefined): LongJobsError =>
    new LongJobsError("record_corrupt", `${subject} is damaged on disk (${place}).`, {
      recoveryHint:
        kept === undefined
          ? "Restore it from a backup, or create a new task."
          : `Its bytes are kept in ${kept}. Restore it from a backup, or create a new task.`,
      partial: { place, ...(kept === undefined ? {} : { quarantine: kept }) },
    }),

  unavailable: (action: string, cause: unknown): LongJobsError =>
    new LongJobsError(
      "store_unavailable",
      `The log could not ${action}; read the task again before repeating the call.`,
      {
        retryable: true,
        cause,
      },
    ),

  noSpace: (dir: string, cause?: unknown): LongJobsError =>
    new LongJobsError(
      "no_space",
      `The disk of ${dir} is full; nothing was written. Free space and repeat the call.`,
      {
        retryable: true,
        ...(cause === undefined ? {} : { cause }),
      },
    ),

  locked: (dir: string, holder: { pid: number; host: string; since: string }): LongJobsError =>
    new LongJobsError(
      "store_locked",
      `${dir} is in use by process ${holder.pid} on ${holder.host} since ${holder.since}; close that store first.`,
      { retryable: true, partial: { dir, pid: holder.pid, host: holder.host, since: holder.since } },
    ),

  takenOver: (dir: string): LongJobsError =>
    new LongJobsError(
      "store_locked",
      `${dir} was taken over by another process, or removed; open the store again.`,
      {
        partial: { dir },
      },
    ),

  tooNew: (name: string, format: number): LongJobsError =>
    new LongJobsError(
      "schema_too_new",
      `${name} has format ${format}; update @longjobs/store-wal to read it.`,
      {
        partial: { format },
      },
    ),
};
