import { Attempt, type AttemptContext } from "./attempt.ts";
import { createOnce, findOnce } from "./create-once.ts";
import type {
  CreatedOnce,
  CreateOnceOptions,
  FoundTask,
  IdempotentCall,
  OnceContext,
} from "./create-once.ts";
import { draftTask, type CreateTaskOptions, type TaskIdentity } from "./draft-task.ts";
import { HeldAttempts } from "./held-attempts.ts";
import { acceptAnswers, answeredKeys, inboxStatus, withdrawQuestions } from "./inbox.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import { duration, maxTimerMs, resolveLifecycleOptions } from "./lifecycle-options.ts";
import type { ResolvedLifecycleOptions, TaskLifecycleOptions } from "./lifecycle-options.ts";
import { interruptedError, isOwnerGone, liveOwners } from "./orphan.ts";
import type { Outcome } from "./outcome.ts";
import { parseResponses } from "./parse-responses.ts";
import { runHandler, type TaskHandler } from "./run-handler.ts";
import { storeErrors } from "./store-errors.ts";
import { TaskChanges } from "./task-changes.ts";
import type { TaskAttempt, TaskHandle } from "./task-handle.ts";
import { isTaskId } from "./task-id.ts";
import { isTerminal, type TaskProgress, type TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";
import { toDetailedTask, type DetailedTask, type TaskView } from "./task-view.ts";
import { TaskWriter } from "./task-writer.ts";
import { terminalPatch } from "./terminal-patch.ts";
import { later } from "./timers.ts";

/** Whose call it is. */
export interface ScopedCall {
  /** Must equal the scope of the task; a task of another scope looks unknown. */
  readonly scope?: string | undefined;
}

/** Options of {@link TaskLifecycle.updateTask}. */
export interface UpdateTaskOptions extends ScopedCall {
  /** Keys whose answers came in a shape that could not even be read: those questions are asked again. */
  readonly malformedKeys?: readonly string[];
}

/** Options of {@link TaskLifecycle.cancelTask}. */
export interface CancelTaskOptions extends ScopedCall {
  /**
   * True to make the task `cancelled` in this very write, as revision 2025-11-25 wants it; the work is told to stop, and a
   * late result is dropped. @default false: the work says when it has stopped
   */
  readonly atOnce?: boolean;
}

/** A task as a caller has seen it. With `statusMessage` progress within the same millisecond is a change too. */
type SeenTask = Pick<TaskView, "lastUpdatedAt" | "status"> & { readonly statusMessage?: string | undefined };

/** Options of {@link TaskLifecycle.waitForChange}. */
export interface WaitForChangeOptions extends ScopedCall {
  /** How long to wait at most, in milliseconds. @default 30_000 */
  readonly timeoutMs?: number;
  /** What the caller has seen last, so that no change before the call is missed. @default the state now */
  readonly seen?: SeenTask;
  /** Ends the wait, not the task. */
  readonly signal?: AbortSignal;
}

/**
 * The engine: creates tasks, runs their handlers, and answers for them.
 *
 * A task is `working` from its creation. It is `input_required` exactly while a question is open. Only the
 * attempt that holds its lease may complete, fail or cancel it; a client may answer and may ask for a cancel.
 * A task whose owner is gone is ended by whoever asks next: as cancelled if that was wished, else as interrupted.
 * Nothing leaves `completed`, `failed` and `cancelled`.
 */
export class TaskLifecycle {
  readonly #options: ResolvedLifecycleOptions;
  readonly #owner: string;
  readonly #changes: TaskChanges;
  readonly #writer: TaskWriter;
  readonly #attempts: HeldAttempts;
  readonly #running = new Set<Promise<Outcome>>();
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(options: TaskLifecycleOptions) {
    this.#options = resolveLifecycleOptions(options);
    this.#owner = this.#options.randomId();
    this.#changes = new TaskChanges(this.#options);
    this.#writer = new TaskWriter(this.#options, (record) => this.#changes.publish(record));
    this.#attempts = new HeldAttempts(this.#options, this.#writer);
    liveOwners().add(this.#owner);
  }

  /** Counts of what this engine holds in memory; all return to zero when their tasks have ended. */
  get stats(): { readonly attempts: number; readonly watchedTasks: number; readonly queuedWrites: number } {
    return {
      attempts: this.#attempts.size,
      watchedTasks: this.#changes.size,
      queuedWrites: this.#writer.size,
    };
  }

  /**
   * Creates a task with a lease of this engine, in one write. When it resolves, the task can be read by
   * anyone (spec "Task Creation"), and {@link handle} gives its write side.
   *
   * @throws TypeError, RangeError for options; whatever the store rejects with.
   */
  async createTask(options: CreateTaskOptions = {}): Promise<TaskView> {
    return this.begin(options).promote();
  }

  /** A task that is not recorded yet: it writes nothing until its attempt is promoted. */
  begin(options: CreateTaskOptions = {}): TaskAttempt {
    return this.#begin(options);
  }

  /**
   * Creates the task of an idempotency key, or finds it: per scope and tool a key stands for one task, for as long as the task
   * is kept, however many calls and instances there are. A new task is recorded, and its work is to be run with the attempt.
   *
   * @throws `idempotency_conflict` for a key that came with another fingerprint; `invalid_request`; what
   *   {@link createTask} throws.
   */
  createOnce(options: CreateOnceOptions): Promise<CreatedOnce> {
    return createOnce(options, this.#onceContext());
  }

  /** The task of an idempotency key as it is now, or `undefined`. @throws `idempotency_conflict`, `invalid_request` */
  findOnce(call: IdempotentCall): Promise<FoundTask | undefined> {
    return findOnce(call, this.#onceContext());
  }

  /**
   * Runs a handler for an attempt of this engine and writes what becomes of its task. Never rejects: the
   * outcome says what happened.
   */
  run(task: TaskHandle, handler: TaskHandler): Promise<Outcome> {
    const attempt = this.#attempts.get(task.taskId);
    if (attempt !== task || attempt === undefined) throw lifecycleErrors.notHeld(task.taskId);
    const running = runHandler(attempt, handler, this.#options, this.#closing.signal);
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
    return running;
  }

  /** Aborts the attempt of a call whose client went away before it could have learned the task's id. */
  abandonRequest(task: TaskHandle): void {
    this.#attempts.get(task.taskId)?.abort(lifecycleErrors.requestCancelled());
  }

  /** The write side of a task whose lease this engine holds. @throws `lease_lost` for any other task. */
  handle(taskId: string): TaskHandle {
    const attempt = this.#attempts.get(taskId);
    if (attempt === undefined) throw lifecycleErrors.notHeld(taskId);
    return attempt;
  }

  /**
   * Takes over a task whose owner is gone: a new attempt with a fresh lease token, the old checkpoint and the
   * answers that people gave.
   *
   * @throws `unknown_task`, `task_terminal`; `lease_lost`, retryable, while another attempt holds it.
   */
  async acquire(taskId: string, call: ScopedCall = {}): Promise<TaskHandle> {
    this.#assertTakesWork();
    await this.#readVisible(taskId, call);
    const token = this.#options.randomId();
    const record = await this.#writer.write(taskId, (found, retrying) => {
      if (retrying && found.lease?.token === token) return undefined;
      if (isTerminal(found.status)) throw lifecycleErrors.terminal(taskId, found.status);
      if (!this.#isOrphan(found)) throw lifecycleErrors.leaseHeld(taskId);
      const lease = { owner: this.#owner, token, durationMs: this.#options.leaseMs };
      return { lease, attempt: found.attempt + 1, crashes: found.crashes + 1 };
    });
    const attempt = new Attempt(this.#context(), { record, recorded: true });
    this.#attempts.hold(attempt);
    attempt.observe(record);
    return attempt;
  }

  /** The task as a client may see it. @throws `unknown_task`, also for expired and foreign tasks. */
  async getTask(taskId: string, call: ScopedCall = {}): Promise<DetailedTask> {
    return toDetailedTask(await this.#answerable(taskId, call));
  }

  /** What the handler last said about its progress, with its counts. @throws `unknown_task` */
  async getProgress(taskId: string, call: ScopedCall = {}): Promise<TaskProgress | undefined> {
    this.#assertOpen();
    return (await this.#readVisible(taskId, call)).progress;
  }

  /**
   * Answers open questions, each on its own. Unknown, answered, withdrawn and superseded keys are ignored; a
   * bad answer puts its question again. On a terminal task nothing happens.
   *
   * @returns The wire keys whose answers were taken.
   * @throws `unknown_task`; `invalid_json`, `record_too_large` for answers that cannot be stored: then none is.
   */
  async updateTask(
    taskId: string,
    responses: { readonly [wireKey: string]: unknown },
    options: UpdateTaskOptions = {},
  ): Promise<readonly string[]> {
    this.#assertOpen();
    const answers = parseResponses(responses, options.malformedKeys ?? [], this.#options.jsonLimits);
    await this.#readVisible(taskId, options);
    const rules = {
      validate: this.#options.validateAnswer,
      // The whole id: ids ordered by time begin alike, and a key used twice would be asked for ever.
      freshKey: (key: string) => `${key}~${this.#options.randomId()}`,
    };
    let taken: readonly string[] = [];
    await this.#writer.write(taskId, (record, retrying) => {
      if (isTerminal(record.status) || record.inputs === undefined) return undefined;
      const inputs = acceptAnswers(record.inputs, answers, rules);
      if (inputs !== record.inputs) taken = answeredKeys(inputs, record.inputs);
      else if (!retrying) taken = [];
      return inputs === record.inputs ? undefined : { inputs, status: inboxStatus(inputs) };
    });
    return taken;
  }

  /**
   * Writes the intent to cancel, withdraws open questions, and aborts the worker's signal wherever it runs. If
   * the work finishes first, its result stands. A task whose owner is gone becomes `cancelled` at once, any other
   * with `atOnce`. On a terminal task nothing happens.
   *
   * @throws `unknown_task`
   */
  async cancelTask(taskId: string, call: CancelTaskOptions = {}): Promise<void> {
    this.#assertOpen();
    await this.#readVisible(taskId, call);
    const token = this.#options.randomId();
    await this.#writer.write(taskId, (record) => {
      if (isTerminal(record.status)) return undefined;
      if (call.atOnce === true || this.#isOrphan(record))
        return this.#orphanPatch({ ...record, cancelRequestedAt: this.#nowIso() }, token);
      const inputs = record.inputs && withdrawQuestions(record.inputs);
      if (record.cancelRequestedAt !== undefined && inputs === record.inputs) return undefined;
      return {
        cancelRequestedAt: record.cancelRequestedAt ?? this.#nowIso(),
        ...(inputs === undefined ? {} : { inputs, status: inboxStatus(inputs) }),
      };
    });
  }

  /**
   * Waits until the task differs from what the caller has seen, is terminal, or the time is up; resolves to
   * the task as it then is. Holds no connection of the store.
   *
   * @throws `unknown_task`; the reason of `signal`.
   */
  async waitForChange(taskId: string, options: WaitForChangeOptions = {}): Promise<DetailedTask> {
    const timeoutMs = duration("timeoutMs", options.timeoutMs, 30_000, { min: 0, max: maxTimerMs });
    const first = await this.#answerable(taskId, options);
    const timeUp = new AbortController();
    const cancelTimer = later(() => timeUp.abort(timedOut), timeoutMs);
    const signals = [
      timeUp.signal,
      this.#closing.signal,
      ...(options.signal === undefined ? [] : [options.signal]),
    ];
    let latest = first;
    try {
      return await this.#changes.until(
        taskId,
        async () => {
          latest = await this.#answerable(taskId, options);
          const changed =
            options.seen === undefined ? latest.version !== first.version : differs(latest, options.seen);
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

  /** Calls `listener` after every write of this engine, with what polling would show. The returned function ends it. */
  onTaskChanged(listener: (task: DetailedTask) => void): () => void {
    return this.#changes.onTaskChanged(listener);
  }

  /** Deletes expired tasks now and resolves to their number. Happens by itself every `sweepIntervalMs`. */
  async sweep(): Promise<number> {
    this.#assertOpen();
    return this.#options.store.sweep();
  }

  /**
   * Stops: no new work; running handlers may finish for `drainMs`, while clients are still answered; then their
   * signals are aborted with `shutdown`, and they are waited for `graceMs` more. The store stays open: its owner closes it. Idempotent.
   *
   * @throws TypeError, RangeError for times that are none; nothing is closed then.
   */
  async close(times: { readonly drainMs?: number; readonly graceMs?: number } = {}): Promise<void> {
    const bounds = { min: 0, max: maxTimerMs };
    const drainMs = duration("drainMs", times.drainMs, 0, bounds);
    const graceMs = duration("graceMs", times.graceMs, 5_000, bounds);
    this.#closed ??= this.#close(drainMs, graceMs);
    await this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(drainMs: number, graceMs: number): Promise<void> {
    await this.#settled(drainMs);
    this.#closing.abort(lifecycleErrors.closed());
    for (const attempt of this.#attempts.all()) attempt.abort(lifecycleErrors.shutdown(attempt.taskId));
    await this.#settled(graceMs);
    for (const attempt of this.#attempts.all()) attempt.abandon();
    this.#attempts.stopTending();
    // Last: from here on others may end what this engine left behind.
    liveOwners().delete(this.#owner);
  }

  /** Resolves when no handler runs any more, or when the time is up. */
  async #settled(timeoutMs: number): Promise<void> {
    if (this.#running.size === 0 || timeoutMs <= 0) return;
    let cancelTimer = (): void => undefined;
    const timeUp = new Promise<void>((resolve) => {
      cancelTimer = later(resolve, timeoutMs);
    });
    await Promise.race([Promise.all(this.#running), timeUp]);
    cancelTimer();
  }

  #begin(options: CreateTaskOptions, identity?: TaskIdentity): Attempt {
    this.#assertTakesWork();
    const attempt = new Attempt(this.#context(), {
      record: draftTask(options, this.#options, this.#owner, identity),
      recorded: false,
    });
    this.#attempts.hold(attempt);
    return attempt;
  }

  /** Holds the attempt before the store has the task: whoever reads it then must not take it for left behind. */
  async #recordOnce(options: CreateOnceOptions, identity: TaskIdentity): Promise<TaskAttempt> {
    const earlier = this.#attempts.get(identity.taskId);
    // A task that expired under its handler: that one is told to stop before the id is used again.
    await earlier?.look();
    if (earlier?.ended === false) throw storeErrors.taskExists(identity.taskId);
    const attempt = this.#begin(options, identity);
    await attempt.promote();
    return attempt;
  }

  #onceContext(): OnceContext {
    return {
      options: this.#options,
      inTurn: (taskId, job) => this.#writer.inTurn(taskId, job),
      record: (options, identity) => this.#recordOnce(options, identity),
      read: (taskId, { scope }) => this.#answerable(taskId, { scope }),
    };
  }

  #context(): AttemptContext {
    return {
      options: this.#options,
      writer: this.#writer,
      changes: this.#changes,
      onEnded: (attempt) => this.#attempts.release(attempt),
    };
  }

  /** The record as it may be shown: a working task without an owner has been ended first. */
  async #answerable(taskId: string, call: ScopedCall): Promise<TaskRecord> {
    this.#assertOpen();
    return this.#endIfOrphan(await this.#readVisible(taskId, call));
  }

  /** A hostile id never reaches the store; a foreign task is the same error as an unknown one. */
  async #readVisible(taskId: string, { scope }: ScopedCall): Promise<TaskRecord> {
    if (!isTaskId(taskId)) throw storeErrors.unknownTask(shownId(taskId));
    const record = await this.#writer.read(taskId);
    if (record.scope !== scope) throw storeErrors.unknownTask(taskId);
    return record;
  }

  #isOrphan(record: TaskRecord): boolean {
    const { lease } = record;
    if (lease?.owner !== this.#owner) return isOwnerGone(record, this.#options.store);
    return this.#attempts.get(record.taskId)?.token !== lease.token;
  }

  /**
   * A working task without an owner ends when somebody asks about it. One that waits for a person stays: the
   * answer may still be given, and is kept.
   */
  async #endIfOrphan(record: TaskRecord): Promise<TaskRecord> {
    if (!this.#mustEnd(record)) return record;
    const token = this.#options.randomId();
    return this.#writer.write(record.taskId, (found) =>
      this.#mustEnd(found) ? this.#orphanPatch(found, token) : undefined,
    );
  }

  #mustEnd(record: TaskRecord): boolean {
    const waits = record.status === "input_required" && record.cancelRequestedAt === undefined;
    return !isTerminal(record.status) && !waits && this.#isOrphan(record);
  }

  #orphanPatch(record: TaskRecord, token: string): TaskPatch {
    const ending = { token, nowMs: this.#options.now(), keepInputs: true };
    if (record.cancelRequestedAt === undefined) {
      return terminalPatch(record, { status: "failed", error: interruptedError(record) }, ending);
    }
    const patch = terminalPatch(record, { status: "cancelled" }, { ...ending, keepInputs: false });
    return { ...patch, cancelRequestedAt: record.cancelRequestedAt };
  }

  #nowIso(): string {
    return new Date(this.#options.now()).toISOString();
  }

  #assertTakesWork(): void {
    if (this.#closed !== undefined) throw lifecycleErrors.closed();
    this.#assertOpen();
  }

  /** While running work drains, clients may still ask, answer and cancel. */
  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw lifecycleErrors.closed();
    this.#attempts.startTending();
  }
}

/** A hostile id is cut, and what is no text is not turned into one: that could throw. */
function shownId(taskId: unknown): string {
  return typeof taskId === "string" ? taskId.slice(0, 64) : `(${typeof taskId})`;
}

const timedOut: unique symbol = Symbol("timed out");

function differs(task: SeenTask, seen: SeenTask): boolean {
  if (Object.hasOwn(seen, "statusMessage") && task.statusMessage !== seen.statusMessage) return true;
  return task.lastUpdatedAt !== seen.lastUpdatedAt || task.status !== seen.status;
}
