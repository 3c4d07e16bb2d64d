import { isTerminal, type Lease, type TaskRecord } from "./task-record.ts";
import type { ClaimOptions } from "./task-store.ts";

/**
 * Refuses what no store may accept in `claim` (C31).
 *
 * @throws TypeError or RangeError
 */
export function assertClaim(owner: string, leaseMs: number, options: ClaimOptions): void {
  if (typeof owner !== "string" || owner === "")
    throw new TypeError("owner must be a text that is not empty.");
  assertLeaseMs(leaseMs);
  assertPositiveInteger("limit", options.limit);
}

/**
 * Refuses what no store may accept as the duration of a lease, in `claim` and in `renew` (C31).
 *
 * @throws RangeError
 */
export function assertLeaseMs(leaseMs: number): void {
  assertPositiveInteger("leaseMs", leaseMs);
}

/**
 * Whether `claim` may take this record, its lease aside: it is a task, it is open, and it is among those that
 * were asked for (C25, C27). A cancelled task needs no tool: whoever takes it only ends it.
 */
export function isClaimable(record: TaskRecord, { tools, taskIds }: ClaimOptions): boolean {
  if (isTerminal(record.status) || record.kind !== undefined) return false;
  if (taskIds !== undefined && !taskIds.includes(record.taskId)) return false;
  if (tools === undefined || record.cancelRequestedAt !== undefined) return true;
  return record.work !== undefined && tools.includes(record.work.tool);
}

/** The lease that a claim writes: its token is random, and fresh for each task (C26). */
export function newLease(owner: string, leaseMs: number): Lease {
  return Object.freeze({ owner, token: crypto.randomUUID(), durationMs: leaseMs });
}

/** Whether this is the token with which the task is held; a finished task is held by nobody (C30). */
export function holdsLease(record: TaskRecord, token: string): boolean {
  return !isTerminal(record.status) && record.lease?.token === token;
}

function assertPositiveInteger(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${name} must be a positive integer.`);
}
