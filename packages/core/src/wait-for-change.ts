import { duration, maxTimerMs } from "./lifecycle-options.ts";
import type { TaskChanges } from "./task-changes.ts";
import { isTerminal, type TaskRecord } from "./task-record.ts";
import type { Timers } from "./timers.ts";
import { toDetailedTask, type DetailedTask, type TaskView } from "./task-view.ts";

/** A task as a caller has seen it. With `statusMessage` progress within the same millisecond is a change too. */
export type SeenTask = Pick<TaskView, "lastUpdatedAt" | "status"> & {
  readonly statusMessage?: string | undefined;
};

/** How a caller waits. */
export interface WaitOptions {
  /** How long to wait at most, in milliseconds. @default 30_000 */
  readonly timeoutMs?: number;
  /** What the caller has seen last, so that no change before the call is missed. @default the state now */
  readonly seen?: SeenTask;
  /** Ends the wait, not the task. */
  readonly signal?: AbortSignal;
}

const timedOut: unique symbol = Symbol("timed out");

/** Reads a task until it differs from what the caller has seen, is terminal, or the time is up. */
export async function waitForChange(
  changes: TaskChanges,
  taskId: string,
  read: () => Promise<TaskRecord>,
  { timeoutMs: wished, seen, signal }: WaitOptions,
  { closing, timers }: { readonly closing: AbortSignal; readonly timers: Timers },
): Promise<DetailedTask> {
  const timeoutMs = duration("timeoutMs", wished, 30_000, { min: 0, max: maxTimerMs });
  const first = await read();
  const timeUp = new AbortController();
  const cancelTimer = timers.later(() => timeUp.abort(timedOut), timeoutMs);
  const signals = [timeUp.signal, closing, ...(signal === undefined ? [] : [signal])];
  let latest = first;
  try {
    return await changes.until(
      taskId,
      async () => {
        latest = await read();
        const changed = seen === undefined ? latest.version !== first.version : differs(latest, seen);
        return changed || isTerminal(latest.status) ? toDetailedTask(latest) : undefined;
      },
      AbortSignal.any(signals),
    );
  } catch (error) {
    if (error === timedOut) return toDetailedTask(latest);
    throw error;
  } finally {
    cancelTimer();
  }
}

function differs(task: SeenTask, seen: SeenTask): boolean {
  if (Object.hasOwn(seen, "statusMessage") && task.statusMessage !== seen.statusMessage) return true;
  return task.lastUpdatedAt !== seen.lastUpdatedAt || task.status !== seen.status;
}
