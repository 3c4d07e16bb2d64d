import { isLongJobsError, jsonEquals, LongJobsError } from "@longjobs/core";
import type {
  DetailedTask,
  JsonValue,
  TaskLifecycle,
  TaskProgress,
  WaitForChangeOptions,
} from "@longjobs/core";

/** How a call waits for a task. */
export interface TaskWait {
  readonly lifecycle: TaskLifecycle;
  readonly scope: string | undefined;
  /** Ends the wait, never the task. */
  readonly signal: AbortSignal;
  /** When the wait is over at the latest, by `now`. @default never */
  readonly untilMs?: number;
  /** Milliseconds that never go back. @default performance.now */
  readonly now?: () => number;
  /** Called with what the handler says meanwhile, each thing once. */
  readonly sendProgress?: ((progress: TaskProgress) => void) | undefined;
}

/** One wait for a change: only a bound, the loop around it waits on. */
const maxWaitMs = 600_000;

/**
 * Waits while a task is such as the caller does not want it, and gives it as it then is.
 *
 * @throws the reason of the signal; `unknown_task` when the task expires; `shutdown`, retryable, when this server closes in the
 *   meantime: the task is kept.
 */
export async function waitWhile(
  first: DetailedTask,
  unwanted: (task: DetailedTask) => boolean,
  wait: TaskWait,
): Promise<DetailedTask> {
  const { lifecycle, scope, signal, sendProgress, untilMs = Infinity } = wait;
  const { now = () => performance.now() } = wait;
  let task = first;
  let told: JsonValue | undefined;
  for (let leftMs = untilMs - now(); unwanted(task) && leftMs > 0; leftMs = untilMs - now()) {
    if (sendProgress !== undefined) {
      const progress = await lifecycle.getProgress(task.taskId, { scope });
      // The record changes for other reasons too; what was said before is not said again.
      if (progress !== undefined && !jsonEquals({ ...progress }, told)) sendProgress(progress);
      told = progress === undefined ? undefined : { ...progress };
    }
    task = await waitForChange(
      task.taskId,
      {
        scope,
        signal,
        timeoutMs: Math.min(Math.ceil(leftMs), maxWaitMs),
        seen: { ...task, statusMessage: task.statusMessage },
      },
      lifecycle,
    );
  }
  return task;
}

async function waitForChange(
  taskId: string,
  options: WaitForChangeOptions,
  lifecycle: TaskLifecycle,
): Promise<DetailedTask> {
  try {
    return await lifecycle.waitForChange(taskId, options);
  } catch (error) {
    if (!isLongJobsError(error, "store_closed")) throw error;
    throw new LongJobsError("shutdown", "This server is shutting down.", { retryable: true, cause: error });
  }
}
