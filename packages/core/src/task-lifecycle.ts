import { Attempt, type AttemptContext } from "./attempt.ts";
import { ClientCalls } from "./client-calls.ts";
import type {
  CancelTaskOptions,
  FollowTasksOptions,
  ScopedCall,
  UpdateTaskOptions,
  WaitForChangeOptions,
} from "./client-calls.ts";
import { createOnce, findOnce } from "./create-once.ts";
import type {
  CreatedOnce,
  CreateOnceOptions,
  DispatchedOnce,
  FoundTask,
  IdempotentCall,
  OnceContext,
} from "./create-once.ts";
import { draftTask, type CreateTaskOptions, type TaskIdentity } from "./draft-task.ts";
import { HeldAttempts } from "./held-attempts.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Housekeeping } from "./housekeeping.ts";
import { letGo, letGoMs } from "./let-go.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import { duration, maxTimerMs, resolveLifecycleOptions } from "./lifecycle-options.ts";
import type { ResolvedLifecycleOptions, TaskLifecycleOptions } from "./lifecycle-options.ts";
import { instant } from "./lease-clock.ts";
import type { Outcome } from "./outcome.ts";
import { Recovery } from "./recovery.ts";
import { Runs } from "./runs.ts";
import { type TaskHandler } from "./run-handler.ts";
import { reactionMs, resolveRunLimits, type RunLimits } from "./run-limits.ts";
import { storeErrors } from "./store-errors.ts";
import { TakeOver } from "./take-over.ts";
import { TaskChanges } from "./task-changes.ts";
import type { TaskFeed } from "./task-feed.ts";
import type { TaskAttempt, TaskHandle } from "./task-handle.ts";
import { isTerminal, type TaskProgress } from "./task-record.ts";
import { dispatchOwner } from "./task-runner.ts";
import { toDetailedTask, toTaskView, type DetailedTask, type TaskView } from "./task-view.ts";
import { TaskWriter } from "./task-writer.ts";

/** Counts of what an engine holds in memory. All but `lateOutcomes` return to zero when their tasks have ended. */
export interface LifecycleStats {
  /** Tasks whose lease this engine holds. */
  readonly attempts: number;
  /** Tasks with a handler that has not come to its end. */
  readonly handlers: number;
  /** Of these, handlers that wait for a place (see `maxConcurrentRuns`). */
  readonly queuedRuns: number;
  /** Handlers that came to their end after their task had been ended without them, since the engine began. */
  readonly lateOutcomes: number;
  /** Tasks that somebody listens to. */
  readonly watchedTasks: number;
  /** Tasks with a write under way or queued. */
  readonly queuedWrites: number;
  /** Tasks of others that were asked about and whose signs of life are awaited, on a store that cannot claim. */
  readonly watchedOwners: number;
}

/** Options of {@link TaskLifecycle.close}. */
export interface CloseOptions {
  /** How long running handlers may go on before their signals are aborted, in milliseconds. @default 0 */
  readonly drainMs?: number;
  /**
   * How long nobody may take over a task whose handler goes on in spite of its signal, in milliseconds from then.
   * 0 gives it free at once, beside its handler. @default 5_000
   */
  readonly shutdownGraceMs?: number;
}

/**
 * The engine: creates tasks, runs their handlers, and answers for them.
 *
 * A task is `working` from its creation. It is `input_required` exactly while a question is open. Only the
 * attempt that holds its lease may complete, fail or cancel it; a client may answer and may ask for a cancel.
 * A lease that nobody renews lapses, and only the store says that it has: then another engine may take the task, for a
 * new attempt under a fresh token, or to end it. Nothing leaves `completed`, `failed` and `cancelled`.
 */
export class TaskLifecycle {
  readonly #options: ResolvedLifecycleOptions;
  readonly #owner: string;
  readonly #changes: TaskChanges;
  readonly #writer: TaskWriter;
  readonly #attempts = new HeldAttempts();
  readonly #takeOver: TakeOver;
  readonly #clients: ClientCalls;
  readonly #recovery: Recovery;
  readonly #heartbeat: Heartbeat;
  readonly #housekeeping: Housekeeping;
  readonly #runs: Runs;
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(options: TaskLifecycleOptions) {
    this.#options = resolveLifecycleOptions(options);
    this.#owner = this.#options.randomId();
    this.#changes = new TaskChanges(this.#options);
    this.#writer = new TaskWriter(this.#options, (record) => this.#changes.publish(record));
    const isClosing = (): boolean => this.#closed !== undefined;
    this.#takeOver = new TakeOver({
      ...this.#context(),
      attempts: this.#attempts,
      owner: this.#owner,
      isClosing,
    });
    this.#recovery = new Recovery({
      options: this.#options,
      writer: this.#writer,
      takeOver: this.#takeOver,
      freeSlots: () => this.#runs.freeSlots,
      isClosing,
    });
    this.#clients = new ClientCalls({
      options: this.#options,
      writer: this.#writer,
      changes: this.#changes,
      takeOver: this.#takeOver,
      recovery: this.#recovery,
      freeSlots: () => this.#runs.freeSlots,
      isClosing,
      closed: this.#closing.signal,
      assertOpen: () => this.#assertOpen(),
    });
    this.#heartbeat = new Heartbeat(this.#options, this.#writer, this.#attempts);
    this.#housekeeping = new Housekeeping(this.#options, this.#heartbeat, this.#recovery);
    this.#runs = new Runs(this.#options, this.#closing.signal);
  }

  get stats(): LifecycleStats {
    return {
      attempts: this.#attempts.size,
      handlers: this.#runs.size,
      queuedRuns: this.#runs.queued,
      lateOutcomes: this.#runs.late,
      watchedTasks: this.#changes.size,
      queuedWrites: this.#writer.size,
      watchedOwners: this.#takeOver.size,
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
  async createOnce(options: CreateOnceOptions): Promise<CreatedOnce> {
    const once = await createOnce(
      options,
      this.#onceContext((made, identity) => this.#recordOnce(made, identity)),
    );
    return once.found === undefined ? { attempt: once.made } : once;
  }

  /** The task of an idempotency key as it is now, or `undefined`. @throws `idempotency_conflict`, `invalid_request` */
  findOnce(call: IdempotentCall): Promise<FoundTask | undefined> {
    return findOnce(
      call,
      this.#onceContext(() => Promise.reject(new Error("Nothing is made to find a task."))),
    );
  }

  /**
   * Runs a handler for an attempt of this engine and writes what becomes of its task. Never rejects: the
   * outcome says what happened. An earlier handler of the same task in this process is waited for.
   *
   * @throws `lease_lost` when the attempt is not held here, `shutdown` when that is because this engine has closed;
   *   TypeError, RangeError for limits that are none.
   */
  run(task: TaskHandle, handler: TaskHandler, limits: RunLimits = {}): Promise<Outcome> {
    const attempt = this.#attempts.get(task.taskId);
    if (attempt !== task || attempt === undefined) {
      // A task that was being recorded while this engine closed is another's to run.
      if (this.#closed !== undefined) throw lifecycleErrors.shutdown(task.taskId);
      throw lifecycleErrors.notHeld(task.taskId);
    }
    return this.#runs.run(attempt, handler, resolveRunLimits(limits));
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
   * Begins a new attempt of a task that nobody holds: a fresh lease token, the old checkpoint and the answers that people
   * gave. A task that waits for a worker (see `TaskRunner.dispatch`) is taken too.
   *
   * @throws `unknown_task`, `task_terminal`; `lease_lost`, retryable, while another attempt holds it.
   */
  async acquire(taskId: string, call: ScopedCall = {}): Promise<TaskAttempt> {
    this.#assertTakesWork();
    const record = await this.#clients.readVisible(taskId, call);
    const attempt = await this.#takeOver.begin(await this.#takeOver.take(record));
    if (attempt === undefined) throw lifecycleErrors.closed();
    return attempt;
  }

  /**
   * Runs a task that waits for a worker, or that nobody holds, here and to its end, whosever it is: what a worker of a fleet
   * calls when its queue has delivered a task. One that has ended already, or must not run again, is not run.
   *
   * @throws TypeError when its tool is not registered here; `unknown_task`; `lease_lost`, retryable, while another attempt
   *   holds it; `shutdown`, retryable, when this instance stopped before the work was done.
   */
  async runTask(taskId: string): Promise<DetailedTask> {
    this.#assertTakesWork();
    const { runner } = this.#options;
    const record = await this.#clients.read(taskId);
    if (isTerminal(record.status)) return toDetailedTask(record);
    const tool = record.work?.tool ?? "";
    if (runner?.tools().has(tool) !== true)
      throw new TypeError(`Task ${taskId} needs the tool ${tool}, which is not registered here.`);
    const outcome = await this.#recovery.runHere(await this.#takeOver.take(record), runner);
    const ended = await this.#clients.read(taskId);
    if (outcome?.status === "abandoned" && !isTerminal(ended.status)) throw outcome.reason;
    return toDetailedTask(ended);
  }

  /**
   * Looks for tasks whose process is gone and goes on with them as the `runner` says: those that were cancelled end as
   * cancelled, others run again or end as interrupted. Renews the leases held here first. Happens by itself every third of a lease.
   *
   * @returns How many tasks were taken over.
   * @throws what the store rejects `claim` with.
   */
  async recover(): Promise<number> {
    this.#assertTakesWork();
    return this.#housekeeping.recover();
  }

  /** Creates a task for a worker elsewhere: held for it, and delivered by the `runner`. @throws as `createTask` does */
  dispatchTask(options: CreateTaskOptions): Promise<TaskView> {
    return this.#dispatch(options);
  }

  /** As {@link dispatchTask}, for the task of an idempotency key: delivers it, or finds it. @throws as `createOnce` does */
  async dispatchOnce(options: CreateOnceOptions): Promise<DispatchedOnce> {
    const once = await createOnce(
      options,
      this.#onceContext((made, identity) => this.#dispatch(made, identity)),
    );
    return once.found === undefined ? { view: once.made } : once;
  }

  async #dispatch(options: CreateTaskOptions, identity?: TaskIdentity): Promise<TaskView> {
    this.#assertTakesWork();
    const { dispatchMs } = this.#options;
    const { taskId, lease, ...draft } = draftTask(options, this.#options, this.#owner, identity);
    const held = { owner: dispatchOwner, token: lease?.token ?? "", durationMs: dispatchMs };
    const record = await this.#writer.create({ ...draft, taskId, attempt: 0, released: true, lease: held });
    // Accepted is accepted: nobody waits for the delivery.
    void this.#recovery.deliver(record);
    return toTaskView(record);
  }

  /** The task as a client may see it. @throws `unknown_task`, also for expired and foreign tasks. */
  getTask(taskId: string, call: ScopedCall = {}): Promise<DetailedTask> {
    return this.#clients.getTask(taskId, call);
  }

  /** What the handler last said about its progress, with its counts. @throws `unknown_task` */
  getProgress(taskId: string, call: ScopedCall = {}): Promise<TaskProgress | undefined> {
    return this.#clients.getProgress(taskId, call);
  }

  /**
   * Answers open questions, each on its own. Unknown, answered, withdrawn and superseded keys are ignored; a
   * bad answer puts its question again. On a terminal task nothing happens.
   *
   * @returns The wire keys whose answers were taken.
   * @throws `unknown_task`; `invalid_json`, `record_too_large` for answers that cannot be stored: then none is.
   */
  updateTask(
    taskId: string,
    responses: { readonly [wireKey: string]: unknown },
    options: UpdateTaskOptions = {},
  ): Promise<readonly string[]> {
    return this.#clients.updateTask(taskId, responses, options);
  }

  /**
   * Writes the intent to cancel, withdraws open questions, and aborts the worker's signal wherever it runs. If
   * the work finishes first, its result stands. A task that nobody holds becomes `cancelled` at once, any other
   * with `atOnce`. On a terminal task nothing happens.
   *
   * @throws `unknown_task`
   */
  cancelTask(taskId: string, call: CancelTaskOptions = {}): Promise<void> {
    return this.#clients.cancelTask(taskId, call);
  }

  /**
   * Ends a task as interrupted, or as cancelled if that was wished, if nobody holds it: for work that cannot be run
   * again. A task that is held or has ended stays as it is.
   *
   * @throws `unknown_task`
   */
  endIfOrphan(taskId: string, call: ScopedCall = {}): Promise<DetailedTask> {
    return this.#clients.endIfOrphan(taskId, call);
  }

  /**
   * Waits until the task differs from what the caller has seen, is terminal, or the time is up; resolves to
   * the task as it then is. Holds no connection of the store.
   *
   * @throws `unknown_task`; the reason of `signal`.
   */
  waitForChange(taskId: string, options: WaitForChangeOptions = {}): Promise<DetailedTask> {
    return this.#clients.waitForChange(taskId, options);
  }

  /**
   * Follows the tasks among these that the caller may see, whichever engine changes them. A foreign id is left out like an unknown
   * one, and so is one that a client could not have been given. Close the feed when nobody takes from it any more; it
   * outlives {@link close}, so that the last states can be taken.
   *
   * @throws what the store rejects with.
   */
  followTasks(taskIds: readonly string[], options: FollowTasksOptions): Promise<TaskFeed> {
    return this.#clients.followTasks(taskIds, options);
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
   * Stops: no new work; running handlers may finish for `drainMs`, while clients are still answered; then their signals are
   * aborted with `shutdown`. Tasks whose handlers have come to their end are free for others at once; those of handlers that
   * go on are free after `shutdownGraceMs`. Takes little longer than `drainMs`. The store stays open: its owner closes it.
   * Idempotent.
   *
   * @throws TypeError, RangeError for times that are none; nothing is closed then.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const bounds = { min: 0, max: maxTimerMs };
    const drainMs = duration("drainMs", options.drainMs, 0, bounds);
    const shutdownGraceMs = duration("shutdownGraceMs", options.shutdownGraceMs, 5_000, bounds);
    this.#closed ??= this.#close(drainMs, shutdownGraceMs);
    await this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(drainMs: number, shutdownGraceMs: number): Promise<void> {
    await this.#runs.ended(drainMs);
    this.#closing.abort(lifecycleErrors.closed());
    for (const attempt of this.#attempts.all()) attempt.abort(lifecycleErrors.shutdown(attempt.taskId));
    await this.#runs.ended(reactionMs);
    const lastBeat = this.#housekeeping.stop();
    const held = this.#attempts.all().filter((attempt) => attempt.accepted);
    const isRunning = ({ taskId }: Attempt): boolean => this.#runs.has(taskId);
    const released = letGo(held, { isRunning, graceMs: shutdownGraceMs, lastBeat }, this.#options);
    if (!(await this.#options.timers.withinAwake(Promise.all([released, lastBeat]), letGoMs)))
      this.#options.reportError(lifecycleErrors.letGoHangs());
    for (const attempt of this.#attempts.all()) attempt.abandon();
  }

  #begin(options: CreateTaskOptions, identity?: TaskIdentity): Attempt {
    this.#assertTakesWork();
    const attempt = new Attempt(this.#context(), {
      record: draftTask(options, this.#options, this.#owner, identity),
      recorded: false,
      leasedSince: instant(this.#options),
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

  #onceContext<Made>(record: OnceContext<Made>["record"]): OnceContext<Made> {
    return {
      options: this.#options,
      inTurn: (taskId, job) => this.#writer.inTurn(taskId, job),
      record,
      read: (taskId, { scope }) => this.#clients.readAnswerable(taskId, { scope }),
    };
  }

  #context(): AttemptContext {
    return {
      options: this.#options,
      writer: this.#writer,
      changes: this.#changes,
      onLeased: (attempt) => this.#heartbeat.watch(attempt),
      onEnded: (attempt) => this.#attempts.release(attempt),
    };
  }

  #assertTakesWork(): void {
    if (this.#closed !== undefined) throw lifecycleErrors.closed();
    this.#assertOpen();
  }

  /** While running work drains, clients may still ask, answer and cancel. */
  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw lifecycleErrors.closed();
    this.#housekeeping.start();
  }
}
