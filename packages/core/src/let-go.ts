import { isRefusal, type Attempt } from "./attempt.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { canLease } from "./task-store.ts";

/** A store that answers no more must not hold up a shutdown: leases lapse by themselves. */
export const letGoMs = 200;

/**
 * Gives back the leases that no handler works under, and holds the others for `graceMs` more, so that nobody begins a task
 * beside a handler that has not stopped. Never rejects.
 */
export async function letGo(
  held: readonly Attempt[],
  isRunning: (attempt: Attempt) => boolean,
  graceMs: number,
  { store, reportError }: ResolvedLifecycleOptions,
): Promise<void> {
  const stubborn = graceMs === 0 ? [] : held.filter(isRunning);
  const leases = stubborn.map(({ taskId, token }) => ({ taskId, token }));
  const results = await Promise.allSettled([
    ...(leases.length > 0 && canLease(store) ? [store.renew(leases, graceMs)] : []),
    ...held.filter((attempt) => !stubborn.includes(attempt)).map((attempt) => attempt.release()),
  ]);
  for (const result of results)
    if (result.status === "rejected" && !isRefusal(result.reason)) reportError(result.reason);
}
