import type { TaskRecord } from "./task-record.ts";

/**
 * How long a running task is given ahead of now: its retention, and at least twenty leases, so that a task
 * whose worker died is still there when somebody takes it over. Extended when less than half of it is left.
 */
function horizonMs(retentionMs: number, leaseMs: number): number {
  return Math.max(retentionMs, 20 * leaseMs);
}

/** The `ttlMs` of a new task; `least` is the caller's own wish. */
export function initialTtlMs(
  retentionMs: number | null,
  leaseMs: number,
  least: number | null | undefined,
): number | null {
  if (retentionMs === null || least === null) return null;
  return Math.max(horizonMs(retentionMs, leaseMs), least ?? 0);
}

/** The `ttlMs` that a running task should have now, or `undefined` while what it has is enough. */
export function extendedTtlMs(record: TaskRecord, leaseMs: number, nowMs: number): number | undefined {
  if (record.ttlMs === null || record.retentionMs === null) return undefined;
  const elapsedMs = elapsed(record, nowMs);
  const horizon = horizonMs(record.retentionMs, leaseMs);
  return record.ttlMs - elapsedMs < horizon / 2 ? elapsedMs + horizon : undefined;
}

/** The `ttlMs` of a task that ends now: a result stays readable for its whole retention. */
export function finalTtlMs(record: TaskRecord, nowMs: number): number | null {
  if (record.ttlMs === null || record.retentionMs === null) return null;
  return Math.max(record.ttlMs, elapsed(record, nowMs) + record.retentionMs);
}

function elapsed(record: TaskRecord, nowMs: number): number {
  return Math.max(0, Math.ceil(nowMs - Date.parse(record.createdAt)));
}
