import type { TaskRecord } from "./task-record.ts";
import { isExclusive, type TaskStore } from "./task-store.ts";

/** Shared by every copy of this package in the process: an owner known to one copy is alive for all. */
const registryKey = Symbol.for("longjobs.owners");

/** The owners of leases that live in this process, for records that `claim` does not take because they have a `kind`. */
export function liveOwners(): Set<string> {
  const registry = globalThis as { [registryKey]?: Set<string> };
  return (registry[registryKey] ??= new Set());
}

/**
 * True when the lease of such a record is certainly dead: the store belongs to this process alone, and no such owner lives
 * here. On a shared store only time can tell.
 */
export function isOwnerGone(record: TaskRecord, store: TaskStore): boolean {
  return record.lease === undefined || (isExclusive(store) && !liveOwners().has(record.lease.owner));
}
