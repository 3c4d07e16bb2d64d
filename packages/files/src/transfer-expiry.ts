import type { TaskRecord } from "@longjobs/core";

/** How long transfers are kept. */
export interface ExpiryOptions {
  /** Milliseconds without a write until a transfer expires. */
  readonly idleMs: number;
  /** Milliseconds from its opening until it expires whatever happens, a live writer aside. */
  readonly maxLifetimeMs: number;
  /** Milliseconds that a writer's lease lasts. */
  readonly leaseMs: number;
}

/** The time to live of a transfer that was just used. */
export function idleTtlMs(elapsedMs: number, { idleMs, maxLifetimeMs }: ExpiryOptions): number {
  return Math.min(elapsedMs + idleMs, maxLifetimeMs);
}

/** The time to live while somebody writes: beyond the next two renewals of the lease, whatever the cap says. */
export function liveTtlMs(elapsedMs: number, options: ExpiryOptions): number {
  return Math.max(idleTtlMs(elapsedMs, options), elapsedMs + 2 * options.leaseMs);
}

/**
 * The time to live when a writer has ended. One that began before the cap and ended after it leaves time to commit; one
 * that began after it adds nothing, or chunk upon chunk would keep a transfer for ever.
 */
export function endedTtlMs(
  elapsedMs: number,
  begun: { readonly elapsedMs: number; readonly ttlMs: number | null },
  options: ExpiryOptions,
): number | null {
  if (begun.elapsedMs >= options.maxLifetimeMs) return begun.ttlMs;
  return liveTtlMs(elapsedMs, options);
}

/** Milliseconds since the transfer was opened, on the clock of this process. */
export function elapsedOf({ createdAt }: Pick<TaskRecord, "createdAt">, nowMs: number): number {
  return Math.max(0, nowMs - Date.parse(createdAt));
}

/** When a transfer expires, in milliseconds since 1970; `undefined` for never. */
export function expiresAtMs({
  createdAt,
  ttlMs,
}: Pick<TaskRecord, "createdAt" | "ttlMs">): number | undefined {
  return ttlMs === null ? undefined : Date.parse(createdAt) + ttlMs;
}
