import type { TaskError, TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";
import { terminalPatch } from "./terminal-patch.ts";

/** How a task ends that nobody runs any more. */
export interface OrphanEnding {
  /** The token of the lease that the ending engine holds. */
  readonly token: string;
  readonly nowMs: number;
  readonly error: TaskError;
}

/** The terminal write for a task without a worker: cancelled if that was wished, else failed with the error. */
export function orphanPatch(record: TaskRecord, { token, nowMs, error }: OrphanEnding): TaskPatch {
  // What a person said is kept after an interruption, until the task expires.
  if (record.cancelRequestedAt === undefined)
    return terminalPatch(record, { status: "failed", error }, { token, nowMs, keepInputs: true });
  const patch = terminalPatch(record, { status: "cancelled" }, { token, nowMs });
  return { ...patch, cancelRequestedAt: record.cancelRequestedAt };
}

/** The JSON-RPC error of a task whose work died with its process, and which is not run again. */
export function interruptedError(record: TaskRecord): TaskError {
  return {
    code: -32603,
    message: "The server that ran this task stopped before the task was finished.",
    data: {
      reason: "interrupted",
      retryable: true,
      recoveryHint: `Call the tool again${withNewKey(record)} to start over; check first whether the interrupted run left effects behind.`,
      attempt: record.attempt,
      checkpoint: record.checkpoint?.value ?? null,
    },
  };
}

/** With the key it had the call would only be told of this end again. */
function withNewKey({ idempotency }: TaskRecord): string {
  return idempotency === undefined ? "" : " with a new idempotency key";
}

/** The JSON-RPC error of a task that has taken its process down with it too often. */
export function maxAttemptsError(record: TaskRecord, crashes: number): TaskError {
  return {
    code: -32603,
    message: `The server stopped ${crashes} times while it ran this task; it is not run again.`,
    data: {
      reason: "max_attempts",
      retryable: false,
      recoveryHint: "Do not repeat the call as it is: it seems to be what stops the server.",
      attempt: record.attempt,
      crashes,
      checkpoint: record.checkpoint?.value ?? null,
    },
  };
}
