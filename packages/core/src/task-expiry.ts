/**
 * Whether a task has expired (C5, C16). An expired task answers exactly like an unknown one.
 *
 * @param bornAtMs - The store's own stamp of the birth, epoch milliseconds.
 * @param ttlMs - Milliseconds from the birth; `null` means never.
 * @param nowMs - The store's clock.
 */
export function isExpired(bornAtMs: number, ttlMs: number | null, nowMs: number): boolean {
  return ttlMs !== null && nowMs - bornAtMs >= ttlMs;
}
