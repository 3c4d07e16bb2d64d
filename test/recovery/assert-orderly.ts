import { expect } from "vitest";
import type { Sight } from "./witness.ts";

/**
 * Of each task: attempts follow each other, and a step that was saved is never done again. A step whose saving nobody lived to
 * see may have been saved or not. A process that slept for longer than its lease may be at its beginning, or in the middle of one
 * step, while the next attempt begins; it saves nothing more.
 */
export function assertOrderly(sights: readonly Sight[], said = ""): void {
  for (const [taskId, seen] of byTask(sights)) {
    assertSteps(seen, `task ${taskId}, ${said}`);
    assertFenced(seen, `task ${taskId}, ${said}`);
  }
}

function assertSteps(seen: readonly Sight[], said: string): void {
  let last = 0;
  let saved = 0;
  let stepped = 0;
  const begun = new Set<number>();
  const overslept = new Set<number>();
  for (const { attempt = 0, did, step = 0 } of seen) {
    if (did === "began") {
      expect(begun, `${said}: is begun anew`).not.toContain(attempt);
      begun.add(attempt);
      if (attempt < last) overslept.add(attempt);
      last = Math.max(attempt, last);
    }
    if (did === "saved") saved = Math.max(saved, step);
    if (did !== "stepped") continue;
    if (attempt !== last) {
      expect(overslept, `${said}: attempt ${attempt} stops when ${last} has begun`).not.toContain(attempt);
      overslept.add(attempt);
      continue;
    }
    expect(step, `${said}: attempt ${attempt} does what is to be done next`).toBeGreaterThan(saved);
    expect(step, `${said}: attempt ${attempt} leaves no step out`).toBeLessThanOrEqual(stepped + 1);
    stepped = Math.max(stepped, step);
  }
}

/**
 * P17: in the order of the versions, a run was begun by the process that had the lease last, nothing was saved by an attempt that
 * was not the last, and the task was ended under the last token.
 */
function assertFenced(seen: readonly Sight[], said: string): void {
  const writes = seen
    .flatMap(({ pid, write }) => (write === undefined ? [] : { pid, ...write }))
    .toSorted((left, right) => left.version - right.version);
  let holder: { readonly pid: number; readonly heldBy: string } | undefined;
  let attempt = 1;
  for (const { pid, version, heldBy, begun, savedBy, endedBy } of writes) {
    if (heldBy !== undefined) holder = { pid, heldBy };
    if (begun !== undefined) expect(pid, `${said}: who began at version ${version}`).toBe(holder?.pid);
    attempt = begun ?? attempt;
    if (savedBy !== undefined) expect(savedBy, `${said}: who saved at version ${version}`).toBe(attempt);
    if (endedBy !== undefined)
      expect(endedBy, `${said}: who ended it at version ${version}`).toBe(holder?.heldBy);
  }
}

function byTask(sights: readonly Sight[]): ReadonlyMap<string, Sight[]> {
  const tasks = new Map<string, Sight[]>();
  for (const sight of sights) {
    if (sight.taskId === undefined) continue;
    const seen = tasks.get(sight.taskId) ?? [];
    seen.push(sight);
    tasks.set(sight.taskId, seen);
  }
  return tasks;
}
