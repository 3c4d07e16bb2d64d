import type { JsonObject, JsonValue } from "./json.ts";
import type { InputRequest, InputResponse, TaskProgress } from "./task-record.ts";
import type { TaskView } from "./task-view.ts";

/**
 * The write side of a task: what a handler works with. Every call is refused once the attempt has lost its lease.
 *
 * While the store is away `progress`, `requestInput`, `resumeInput` and `saveCheckpoint` wait for it; they reject with the reason
 * of `signal` when that is aborted first, at the latest when the lease is over. Only what ends the task rejects with
 * `store_unavailable`: a handler that returns has its result written again and again.
 */
export interface TaskHandle {
  readonly taskId: string;
  /** Which run of the handler this is, from 1. */
  readonly attempt: number;
  /** The value of the last `saveCheckpoint`, of this attempt or an earlier one. */
  readonly checkpoint: JsonValue | undefined;
  /**
   * Aborted once, when the work should stop. The reason is a `LongJobsError` with the code `cancelled`,
   * `expired`, `deadline_exceeded`, `lease_lost`, `shutdown` or `request_cancelled`.
   */
  readonly signal: AbortSignal;

  /**
   * Says how far the work is. While a write is under way, later calls are merged into the next one; a handler that keeps
   * reporting faster than `progressIntervalMs` is written once per interval. The last one is never lost. Need not be awaited.
   *
   * @throws `task_terminal`, `lease_lost`; TypeError for counts that are not finite numbers from 0.
   */
  progress(progress: string | TaskProgress): Promise<void>;

  /**
   * Asks, and waits until every question is answered. Idempotent: the same key with the same request gives
   * the answer that is there, also after a restart. Several calls may wait at once.
   *
   * @throws `input_key_reused`, `input_not_supported`, `invalid_input_response` after four bad answers, and the
   *   reason of `signal` when it is aborted first.
   */
  requestInput<Key extends string>(requests: { readonly [K in Key]: InputRequest }): Promise<{
    readonly [K in Key]: InputResponse;
  }>;

  /** The answers that came while nobody waited for them, by key; each at most once per attempt. */
  resumeInput(): Promise<{ readonly [key: string]: InputResponse }>;

  /**
   * Keeps a small cursor that the next attempt starts from; durable when it resolves.
   *
   * @throws `record_too_large` beyond `maxCheckpointBytes`, and `invalid_json`: the last one stays. `task_terminal`, `lease_lost`
   */
  saveCheckpoint(value: JsonValue): Promise<void>;

  /** Ends the task with a result. @throws `task_terminal`, `lease_lost`, `invalid_json` */
  complete(result: JsonObject): Promise<void>;

  /** Ends the task with a JSON-RPC error. @throws TypeError unless it is `{ code: integer, message, data? }` */
  fail(error: { readonly code: number; readonly message: string; readonly data?: JsonValue }): Promise<void>;

  /** Ends the task as cancelled: the work has stopped. */
  cancelled(statusMessage?: string): Promise<void>;
}

/** A handle whose task may not be recorded yet: work inside an inline budget writes nothing. */
export interface TaskAttempt extends TaskHandle {
  /** True once the task is in the store. */
  readonly recorded: boolean;
  /** True when this attempt can write no more. */
  readonly ended: boolean;
  /** What was last said about progress, recorded or not. */
  readonly lastProgress: TaskProgress | undefined;
  /**
   * Records the task; from then on it is accepted and survives. Idempotent. Asking, saving a checkpoint and
   * ending the task do it by themselves. A rejected create aborts the signal.
   */
  promote(): Promise<TaskView>;
  /**
   * Counts one more asking of a question and returns how often it has been asked now. The counts are kept with
   * each checkpoint and restored from it, so that a handler that starts again asks under the same keys.
   */
  countAsked(question: string): number;
  /** Calls `listener` when the task is being recorded. The returned function ends it. */
  onPromote(listener: () => void): () => void;
  /** Calls `listener` after every `progress`. The returned function ends it. */
  onProgress(listener: (progress: TaskProgress) => void): () => void;
}
