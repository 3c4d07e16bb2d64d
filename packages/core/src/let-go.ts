import { isRefusal, type Attempt } from "./attempt.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { canLease } from "./task-store.ts";

/** A store that answers no more must not hold up a shutdown: leases lapse by themselves. */
export const letGoMs = 200;

/** What happens to the leases of an engine that stops. */
export interface LettingGo {
  /** True for an attempt whose handler has not come to its end. */
  readonly isRunning: (attempt: Attempt) => boolean;
  /** How long the leases of those are held. */
  readonly graceMs: number;
  /** Resolves when no heartbeat is under way that could move a deadline once more. */
  readonly lastBeat: Promise<unknown>;
}

/**
 * Gives back the leases that no handler works under, and holds the others for `graceMs` more, so that nobody begins a task
 * beside a handler that has not stopped. Never rejects.
 */
export async function letGo(
  held: readonly Attempt[],
  { isRunning, graceMs, lastBeat }: LettingGo,
  options: ResolvedLifecycleOptions,
): Promise<void> {
  const stubborn = graceMs === 0 ? [] : held.filter(isRunning);
  const free = graceMs === 0 ? held : held.filter((attempt) => !isRunning(attempt));
  const results = await Promise.allSettled([
    ...free.map((attempt) => attempt.release()),
    options.timers.withinAwake(lastBeat, letGoMs / 2).then(() => holdOn(stubborn, graceMs, options)),
  ]);
  for (const result of results)
    if (result.status === "rejected" && !isRefusal(result.reason)) options.reportError(result.reason);
}

async function holdOn(
  stubborn: readonly Attempt[],
  graceMs: number,
  { store }: ResolvedLifecycleOptions,
): Promise<void> {
  if (stubborn.length === 0) return;
  const leases = stubborn.map(({ taskId, token }) => ({ taskId, token }));
  if (canLease(store)) await store.renew(leases, graceMs);
  else await Promise.all(stubborn.map((attempt) => attempt.shorten(graceMs)));
}
