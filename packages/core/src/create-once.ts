import type { CreateTaskOptions, TaskIdentity } from "./draft-task.ts";
import { assertIdempotencyKey, idempotencyConflict } from "./idempotency-key.ts";
import { readIdempotencySecret } from "./idempotency-secret.ts";
import { idempotentTaskId } from "./idempotent-id.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import type { TaskAttempt } from "./task-handle.ts";
import type { TaskRecord, TaskWork } from "./task-record.ts";
import { toDetailedTask, toTaskView, type DetailedTask, type TaskView } from "./task-view.ts";
import type { TaskWriter } from "./task-writer.ts";

/** The idempotency key of a call, and what the call must have in common with its repeats. */
export interface Idempotency {
  /** 1 to 256 characters; counts for one scope and one tool. */
  readonly key: string;
  /** Of the arguments as the client sent them, such as {@link fingerprintJson} gives: a repeat has the same. */
  readonly fingerprint: string;
  /** What the caller calls the key, for errors. @default "idempotencyKey" */
  readonly param?: string;
}

/** Options of {@link TaskLifecycle.createOnce}. */
export interface CreateOnceOptions extends CreateTaskOptions {
  readonly work: TaskWork;
  readonly idempotency: Idempotency;
}

/** What is needed to find the task of a key. */
export type IdempotentCall = Pick<CreateOnceOptions, "scope" | "work" | "idempotency">;

/** The task that an earlier call with the same key made, as it is now. */
export interface FoundTask {
  readonly view: TaskView;
  readonly task: DetailedTask;
}

/** A task that is new and recorded, with the attempt that its work is to be run with; or the one that is there. */
export type CreatedOnce =
  | { readonly attempt: TaskAttempt; readonly found?: undefined }
  | { readonly found: FoundTask; readonly attempt?: undefined };

/** A task that waits for a worker, or the one that is there. */
export type DispatchedOnce =
  | { readonly view: TaskView; readonly found?: undefined }
  | { readonly found: FoundTask; readonly view?: undefined };

/** What the engine does for a call with a key. */
export interface OnceContext<Made = unknown> {
  readonly options: ResolvedLifecycleOptions;
  readonly inTurn: TaskWriter["inTurn"];
  /** Records a new task under this id. @throws `task_exists` */
  readonly record: (options: CreateOnceOptions, identity: TaskIdentity) => Promise<Made>;
  /** The record as it may be shown. @throws `unknown_task` */
  readonly read: (taskId: string, call: IdempotentCall) => Promise<TaskRecord>;
}

/** An id that is taken when a task is created and free when it is read has expired in between: rare, and never often. */
const maxBirths = 10;

/**
 * Creates the task of a key unless it is there. The id follows from the key, so of any number of calls, on any number of
 * instances, the store lets one create it; a create that the store reports as failed is recognised by its lease token.
 */
export async function createOnce<Made>(
  options: CreateOnceOptions,
  context: OnceContext<Made>,
): Promise<{ readonly made: Made; readonly found?: undefined } | { readonly found: FoundTask }> {
  const { fingerprint } = options.idempotency;
  for (let births = 1; ; births += 1) {
    const taskId = await taskIdOf(options, context);
    try {
      // One at a time: until the store has answered, nobody knows whose attempt holds the task.
      const made = await context.inTurn(taskId, () =>
        context.record(options, { taskId, idempotency: { fingerprint } }),
      );
      return { made };
    } catch (error) {
      const found = await find(taskId, options, context);
      if (found !== undefined) return { found };
      if (births === maxBirths || !isLongJobsError(error, "task_exists")) throw error;
    }
  }
}

/** The task of a key, or `undefined` when there is none: no call came, or what it made has expired. */
export async function findOnce(call: IdempotentCall, context: OnceContext): Promise<FoundTask | undefined> {
  return find(await taskIdOf(call, context), call, context);
}

async function taskIdOf(
  { scope, work, idempotency: { key, fingerprint, param = defaultParam } }: IdempotentCall,
  { options }: OnceContext,
): Promise<string> {
  assertIdempotencyKey(key, param);
  // Without one every call would be a repeat, whatever its arguments.
  if (typeof fingerprint !== "string" || fingerprint === "")
    throw new TypeError("idempotency.fingerprint must be a text that is not empty.");
  return idempotentTaskId(await readIdempotencySecret(options), { scope, tool: work.tool, key });
}

async function find(
  taskId: string,
  call: IdempotentCall,
  context: OnceContext,
): Promise<FoundTask | undefined> {
  const { fingerprint, param = defaultParam } = call.idempotency;
  try {
    const record = await context.read(taskId, call);
    if (record.idempotency?.fingerprint !== fingerprint) throw idempotencyConflict(param);
    return { view: toTaskView(record), task: toDetailedTask(record) };
  } catch (error) {
    if (isLongJobsError(error, "unknown_task")) return undefined;
    throw error;
  }
}

const defaultParam = "idempotencyKey";
