import { LongJobsError } from "./longjobs-error.ts";

/** The errors of the engine, each worded once. */
export const lifecycleErrors = {
  terminal: (taskId: string, status: string): LongJobsError =>
    new LongJobsError("task_terminal", `Task ${taskId} is ${status} already; nothing can change it.`),

  leaseLost: (taskId: string): LongJobsError =>
    new LongJobsError(
      "lease_lost",
      `Task ${taskId} is not held by this attempt any more; stop working on it.`,
    ),

  leaseHeld: (taskId: string): LongJobsError =>
    new LongJobsError(
      "lease_lost",
      `Task ${taskId} is held by another attempt; try again when that one has ended.`,
      {
        retryable: true,
      },
    ),

  notHeld: (taskId: string): LongJobsError =>
    new LongJobsError(
      "lease_lost",
      `Task ${taskId} is not held by this instance; take it over with acquire() first.`,
    ),

  cancelled: (taskId: string): LongJobsError =>
    new LongJobsError("cancelled", `Task ${taskId} is being cancelled; stop working on it.`),

  expired: (taskId: string): LongJobsError =>
    new LongJobsError("expired", `Task ${taskId} has expired or was removed; stop working on it.`),

  deadlineExceeded: (taskId: string, maxRunMs: number): LongJobsError =>
    new LongJobsError(
      "deadline_exceeded",
      `Task ${taskId} has worked for ${maxRunMs} ms, which is all that it may take; stop working on it.`,
      { recoveryHint: "Call the tool again and ask for less at a time." },
    ),

  lateOutcome: (taskId: string, status: string): LongJobsError =>
    new LongJobsError(
      "deadline_exceeded",
      `The handler of task ${taskId} went on after its run deadline; what it came to (${status}) was dropped. Let it listen to task.signal.`,
    ),

  renewalHangs: (leases: number): LongJobsError =>
    new LongJobsError(
      "store_unavailable",
      `The store has not answered the renewal of ${leases} leases; work whose lease lapses meanwhile is stopped.`,
      { retryable: true },
    ),

  letGoHangs: (): LongJobsError =>
    new LongJobsError(
      "store_unavailable",
      "The store has not answered while this instance closed: leases may not have been given back, and lapse by themselves.",
      { retryable: true },
    ),

  shutdown: (taskId: string): LongJobsError =>
    new LongJobsError("shutdown", `This instance is shutting down; stop working on task ${taskId}.`, {
      retryable: true,
    }),

  requestCancelled: (): LongJobsError =>
    new LongJobsError(
      "request_cancelled",
      "The client went away before it got a task id; nobody could fetch the result.",
    ),

  closed: (): LongJobsError =>
    new LongJobsError("store_closed", "This TaskLifecycle is closed; make a new one.", {
      // For a client it is the instance that ends: another one, or the next process, is as good.
      retryable: true,
      recoveryHint: "Send the request again: another instance of the server answers it, or the next one.",
    }),
};
