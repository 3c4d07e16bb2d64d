import type { Outcome } from "./outcome.ts";
import type { TaskAttempt } from "./task-handle.ts";
import type { TaskRecord } from "./task-record.ts";

/** How the tasks of one tool go on after the process that ran them is gone. */
export interface RecoveryRules {
  /**
   * `resume` runs the handler again, with its checkpoint and the answers that were given; `fail` ends the task as interrupted,
   * because a handler may have had effects that must not happen twice.
   */
  readonly onInterrupted: "resume" | "fail";
  /** After how many crashes a task is given up; a shutdown is no crash. */
  readonly maxAttempts: number;
}

/** One run that is to begin somewhere. */
export interface Dispatch {
  readonly taskId: string;
  readonly tool: string;
  /** The number of the run that shall begin: with the task's id it names this dispatch, however often it is made. */
  readonly attempt: number;
}

/** Who runs what an engine has taken over. The engine asks it anew each time, so tools may come later. */
export interface TaskRunner {
  /** The tools that can be run here, each with its rules. */
  tools(): ReadonlyMap<string, RecoveryRules>;
  /** Runs the handler of a task that this engine has taken over, to its end. Must not throw or reject. */
  start(attempt: TaskAttempt, record: TaskRecord): Promise<Outcome>;
  /**
   * Where the work runs elsewhere: has a run delivered to a worker, which takes the task with `acquire`. What was not delivered
   * in time is dispatched again, under the same number. Absent: `start` runs it here.
   */
  readonly dispatch?: ((dispatch: Dispatch) => Promise<void>) | undefined;
}

/** The owner of a lease that is held for a worker who has not come yet. */
export const dispatchOwner = "executor";
