import type { TaskError, TaskRecord } from "./task-record.ts";
import { isExclusive, type TaskStore } from "./task-store.ts";

/** Shared by every copy of this package in the process: an owner known to one copy is alive for all. */
const registryKey = Symbol.for("longjobs.owners");

/** The owners that live in this process. */
export function liveOwners(): Set<string> {
  const registry = globalThis as { [registryKey]?: Set<string> };
  return (registry[registryKey] ??= new Set());
}

/**
 * True when a lease of another owner is certainly dead: the store belongs to this process alone, and no such
 * owner lives here. On a shared store only the store could decide that.
 */
export function isOwnerGone(record: TaskRecord, store: TaskStore): boolean {
  return record.lease === undefined || (isExclusive(store) && !liveOwners().has(record.lease.owner));
}

/** The JSON-RPC error of a task whose work died with its process. */
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
