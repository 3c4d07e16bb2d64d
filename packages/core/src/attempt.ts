import { AttemptQuestions } from "./attempt-questions.ts";
import { jsonEquals } from "./canonical-json.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { instant, type Instant } from "./lease-clock.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { Listeners } from "./listeners.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import { normalizeCheckpoint } from "./normalize-checkpoint.ts";
import { normalizeJsonObject } from "./normalize-json.ts";
import { toTaskError } from "./outcome.ts";
import type { TaskChanges } from "./task-changes.ts";
import type { TaskAttempt } from "./task-handle.ts";
import { ProgressWriter } from "./progress-writer.ts";
import { StorePatience } from "./store-patience.ts";
import { statusMessageOf, toProgress } from "./task-progress.ts";
import {
  isTerminal,
  type InputRequest,
  type InputResponse,
  type TaskCheckpoint,
  type TaskProgress,
  type TaskRecord,
} from "./task-record.ts";
import { toTaskView, type TaskView } from "./task-view.ts";
import type { TaskWriter, WritePlan } from "./task-writer.ts";
import { isOwnEnding, terminalPatch, type FinalOutcome } from "./terminal-patch.ts";

/** What an attempt shares with its engine. */
export interface AttemptContext {
  readonly options: ResolvedLifecycleOptions;
  readonly writer: TaskWriter;
  readonly changes: TaskChanges;
  /** Called once, when the attempt's lease is in the store. */
  readonly onLeased: (attempt: Attempt) => void;
  /** Called once, when the attempt can write no more. */
  readonly onEnded: (attempt: Attempt) => void;
}

/** Where an attempt starts from: a draft of a record that is not in the store yet, or a record that is. */
export interface AttemptStart {
  readonly record: TaskRecord;
  readonly recorded: boolean;
  /** Since when the lease of a recorded task may be relied on. */
  readonly leasedSince: Instant;
}

/**
 * One run of a handler.
 *
 * It is a *draft* until `promote` has put its record into the store, then *recorded*, and in the end *ended*:
 * by its own terminal write, by somebody else's, or because it lost its lease. Its signal is one object for
 * the whole life and is aborted at most once. Writes carry the lease token: the record of a task that belongs
 * to another attempt is never changed.
 */
export class Attempt implements TaskAttempt {
  readonly taskId: string;
  readonly attempt: number;
  readonly token: string;
  readonly #context: AttemptContext;
  readonly #controller = new AbortController();
  readonly #promoteListeners: Listeners;
  readonly #progressListeners: Listeners<[progress: TaskProgress]>;
  readonly #questions: AttemptQuestions;
  #draft: TaskRecord;
  #promoting: Promise<TaskRecord> | undefined;
  #recorded: boolean;
  #checkpoint: TaskCheckpoint | undefined;
  #progress: TaskProgress | undefined;
  readonly #progressWriter: ProgressWriter;
  readonly #patience: StorePatience;
  /** How often each question of `ask` was asked. */
  readonly #asked: Map<string, number>;
  #unsureEnd = false;
  #ended = false;
  #lapsed = false;
  #leasedSince: Instant;
  #lastSeen: TaskRecord;
  #unsubscribe: (() => void) | undefined;

  constructor(context: AttemptContext, { record, recorded, leasedSince }: AttemptStart) {
    this.#context = context;
    this.taskId = record.taskId;
    this.attempt = record.attempt;
    this.token = record.lease?.token ?? "";
    this.#draft = record;
    this.#recorded = recorded;
    this.#leasedSince = leasedSince;
    this.#lastSeen = record;
    this.#checkpoint = record.checkpoint;
    this.#progress = record.progress;
    this.#asked = new Map(Object.entries(record.checkpoint?.asked ?? {}));
    const { changes, options } = context;
    this.#promoteListeners = new Listeners(options.reportError);
    this.#progressListeners = new Listeners(options.reportError);
    this.#patience = new StorePatience(options);
    this.#questions = new AttemptQuestions({
      taskId: this.taskId,
      attempt: this.attempt,
      signal: this.signal,
      client: record.work?.client,
      options,
      changes,
      write: (plan) => this.#write(plan),
      read: () => this.#owned(),
    });
    this.#progressWriter = new ProgressWriter({
      intervalMs: options.progressIntervalMs,
      timers: options.timers,
      monotonicNow: options.monotonicNow,
      write: (plan) => this.#write(plan),
      onError: (error) => {
        if (!isRefusal(error)) options.reportError(error);
      },
    });
    if (recorded) this.#listen();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get checkpoint(): JsonValue | undefined {
    return this.#checkpoint?.value;
  }

  get recorded(): boolean {
    return this.#recorded;
  }

  /** True once recording has begun: from then on the outcome belongs into the store. */
  get accepted(): boolean {
    return this.#recorded || this.#promoting !== undefined;
  }

  get lastProgress(): TaskProgress | undefined {
    return this.#progress;
  }

  /** True when this attempt can write no more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** When the last good renewal of the lease was sent. */
  get leasedSince(): Instant {
    return this.#leasedSince;
  }

  /** True when the lease may be another's by now, for all that is known here. */
  get lapsed(): boolean {
    return this.#lapsed;
  }

  /** The record as this attempt has seen it last. */
  get lastSeen(): TaskRecord {
    return this.#lastSeen;
  }

  /** Calls `listener` when the attempt begins to wait for answers, and when it has them all. */
  onWaiting(listener: (waiting: boolean) => void): () => void {
    return this.#questions.onWaiting(listener);
  }

  onPromote(listener: () => void): () => void {
    return this.#promoteListeners.add(listener);
  }

  onProgress(listener: (progress: TaskProgress) => void): () => void {
    return this.#progressListeners.add(listener);
  }

  async promote(): Promise<TaskView> {
    return toTaskView(await this.#recordedTask());
  }

  progress(progress: string | TaskProgress): Promise<void> {
    return handled(this.#reportProgress(progress));
  }

  requestInput<Key extends string>(requests: { readonly [K in Key]: InputRequest }): Promise<{
    readonly [K in Key]: InputResponse;
  }> {
    return handled(this.#questions.ask(requests)) as Promise<{ readonly [K in Key]: InputResponse }>;
  }

  async resumeInput(): Promise<{ readonly [key: string]: InputResponse }> {
    if (!this.accepted) return {};
    await this.#recordedTask();
    return this.#questions.takeFresh(
      await this.#waitingForStore(this.#patience.untilThere(() => this.#owned())),
    );
  }

  countAsked(question: string): number {
    const count = (this.#asked.get(question) ?? 0) + 1;
    this.#asked.set(question, count);
    return count;
  }

  saveCheckpoint(value: JsonValue): Promise<void> {
    return handled(this.#saveCheckpoint(value));
  }

  async complete(result: JsonObject): Promise<void> {
    await this.end({
      status: "completed",
      result: normalizeJsonObject(result, "result", this.#context.options.jsonLimits),
    });
  }

  async fail(error: {
    readonly code: number;
    readonly message: string;
    readonly data?: JsonValue;
  }): Promise<void> {
    await this.end({ status: "failed", error: toTaskError(error, this.#context.options.jsonLimits) });
  }

  async cancelled(statusMessage?: string): Promise<void> {
    await this.end({ status: "cancelled" }, statusMessage);
  }

  /** The terminal write. Rejects when the task is not this attempt's to end, or when the store fails. */
  async end(outcome: FinalOutcome, statusMessage?: string): Promise<void> {
    const { options } = this.#context;
    await this.#recordedTask();
    const plan: WritePlan = (record, retrying) => {
      if ((retrying || this.#unsureEnd) && isOwnEnding(record, outcome, this.token)) return undefined;
      this.#assertOwner(record);
      return terminalPatch(record, outcome, { token: this.token, nowMs: options.now(), statusMessage });
    };
    // What the handler has not awaited comes before the end, as it was called before.
    await this.#patience.settle();
    try {
      await this.#context.writer.write(this.taskId, plan);
    } catch (error) {
      // A refusal is certain; after anything else the write may have happened, and a repeat must recognise it.
      if (isRefusal(error)) await this.look();
      else this.#unsureEnd = true;
      throw error;
    }
    this.#finish();
  }

  /** The lease was renewed by a call that was sent then. */
  renewed(sentAt: Instant): void {
    // An answer that was long under way says less than the one to a later call.
    if (sentAt.monotonicMs > this.#leasedSince.monotonicMs) this.#leasedSince = sentAt;
  }

  /** The store says that the lease is another's, or that there is no task any more: the record says which. */
  async lose(): Promise<void> {
    await this.look();
    if (this.#ended) return;
    this.abort(lifecycleErrors.leaseLost(this.taskId));
    this.#finish();
  }

  /**
   * The lease could not be renewed in time: the work must stop, because another may begin it. The record decides what this
   * attempt may still write, so that a result is kept while nobody has taken the task.
   */
  lapse(): void {
    this.#lapsed = true;
    this.abort(lifecycleErrors.leaseLost(this.taskId));
  }

  /** Gives the lease back, so that another may take the task at once, and writes no more. Nothing else is written. */
  async release(): Promise<void> {
    const released = this.accepted && !this.#ended;
    this.#finish();
    if (!released) return;
    // Of a task that was not recorded whoever recorded it is told.
    if (!(await isFulfilled(this.#promoting))) return;
    try {
      await this.#patience.settle();
      await this.#context.writer.write(this.taskId, (record) =>
        record.lease?.token === this.token ? { lease: undefined, released: true } : undefined,
      );
    } catch (error) {
      // A task that is gone is held by nobody.
      if (!isRefusal(error)) throw error;
    }
  }

  /** Writes how long the lease lasts from now on, for stores where the record says it to whoever waits for it. */
  async shorten(durationMs: number): Promise<void> {
    await this.#context.writer.write(this.taskId, ({ lease }) =>
      lease?.token === this.token ? { lease: { ...lease, durationMs } } : undefined,
    );
  }

  /** Ends an attempt that was never recorded, or that must write nothing. */
  abandon(): void {
    this.#finish();
  }

  /** Aborts the signal with its reason, unless it was aborted before. */
  abort(reason: unknown): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
    this.#patience.end();
  }

  /** Compares this attempt with the record as it is now, and stops where the task is no longer its own. */
  observe(record: TaskRecord | undefined): void {
    if (this.#ended) return;
    if (record === undefined) {
      this.abort(lifecycleErrors.expired(this.taskId));
      return this.#finish();
    }
    this.#lastSeen = record;
    if (isTerminal(record.status)) {
      if (record.finishedBy !== this.token) {
        const cancelled = record.status === "cancelled";
        this.abort(lifecycleErrors[cancelled ? "cancelled" : "leaseLost"](this.taskId));
      }
      return this.#finish();
    }
    if (record.lease?.token !== this.token) {
      this.abort(lifecycleErrors.leaseLost(this.taskId));
      return this.#finish();
    }
    if (record.cancelRequestedAt !== undefined) this.abort(lifecycleErrors.cancelled(this.taskId));
  }

  /** Puts the record into the store, once, and resolves to it as it was put there. */
  #recordedTask(): Promise<TaskRecord> {
    if (this.#promoting === undefined) {
      this.#promoting = this.#recorded ? Promise.resolve(this.#draft) : this.#record();
      // Whoever asked for the promotion hears of a failure; the memo itself must not be an unhandled rejection.
      this.#promoting.catch(ignore);
      this.#promoteListeners.tell();
    }
    return this.#promoting;
  }

  async #record(): Promise<TaskRecord> {
    const { options, writer } = this.#context;
    if (this.#ended) throw lifecycleErrors.terminal(this.taskId, "finished");
    const nowIso = new Date(options.now()).toISOString();
    const record: TaskRecord = Object.freeze({ ...this.#draft, createdAt: nowIso, lastUpdatedAt: nowIso });
    try {
      this.signal.throwIfAborted();
      this.#leasedSince = instant(options);
      this.#lastSeen = record;
      await writer.create(record);
    } catch (error) {
      this.abort(error);
      this.#finish();
      throw error;
    }
    this.#recorded = true;
    this.#listen();
    if (!this.#ended) this.#context.onLeased(this);
    return record;
  }

  async #reportProgress(progress: string | TaskProgress): Promise<void> {
    const next = toProgress(progress);
    this.#progress = next;
    const statusMessage = statusMessageOf(next);
    this.#progressListeners.tell(next);
    if (this.#promoting === undefined && !this.#recorded) {
      if (this.#ended) throw lifecycleErrors.terminal(this.taskId, "finished");
      const { statusMessage: _stale, ...draft } = this.#draft;
      this.#draft = { ...draft, progress: next, ...(statusMessage === undefined ? {} : { statusMessage }) };
      return;
    }
    await this.#progressWriter.report(next);
  }

  async #saveCheckpoint(value: JsonValue): Promise<void> {
    const kept = normalizeCheckpoint(value, this.#context.options);
    const checkpoint: TaskCheckpoint = { value: kept, asked: Object.fromEntries(this.#asked) };
    await this.#write((record, retrying) =>
      retrying && jsonEquals(record.checkpoint, checkpoint) ? undefined : { checkpoint },
    );
    this.#checkpoint = checkpoint;
  }

  /** A write of this attempt: refused when the task is not its own any more. Records the task first. */
  async #write(change: WritePlan): Promise<void> {
    await this.#recordedTask();
    const write = async (): Promise<void> => {
      await this.#context.writer.write(this.taskId, (record, retrying) => {
        // A cancel that no hint has told of yet is noticed here, before it refuses anything.
        this.observe(record);
        this.#assertOwner(record);
        return change(record, retrying);
      });
    };
    try {
      await this.#waitingForStore(this.#patience.inTurn(write));
    } catch (error) {
      if (isRefusal(error)) await this.look();
      throw error;
    }
  }

  /** Why the work has to stop says more than that the store was away until then. */
  async #waitingForStore<Value>(call: Promise<Value>): Promise<Value> {
    try {
      return await call;
    } catch (error) {
      if (isLongJobsError(error, "store_unavailable")) this.signal.throwIfAborted();
      throw error;
    }
  }

  async #owned(): Promise<TaskRecord> {
    const record = await this.#context.writer.read(this.taskId);
    this.observe(record);
    this.#assertOwner(record);
    return record;
  }

  #assertOwner(record: TaskRecord): void {
    if (isTerminal(record.status)) throw lifecycleErrors.terminal(this.taskId, record.status);
    if (record.lease?.token !== this.token) throw lifecycleErrors.leaseLost(this.taskId);
  }

  /** From now on the attempt hears of changes: its own writes with the record, others as a hint to look. */
  #listen(): void {
    if (this.#ended) return;
    this.#unsubscribe = this.#context.changes.subscribe(
      this.taskId,
      (record) => {
        if (record === undefined) void this.look();
        else this.observe(record);
      },
      false,
    );
  }

  /** Reads the record and compares. A store that fails is reported; the next sign looks again. */
  async look(): Promise<void> {
    try {
      this.observe(await this.#context.options.store.get(this.taskId));
    } catch (error) {
      if (!this.#ended) this.#context.options.reportError(error);
    }
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unsubscribe?.();
    this.#progressWriter.stop();
    this.#patience.end();
    this.#promoteListeners.clear();
    this.#progressListeners.clear();
    this.#questions.end();
    this.#context.onEnded(this);
  }
}

/** An error that says for certain that this attempt may not write. */
export function isRefusal(error: unknown): boolean {
  return ["task_terminal", "lease_lost", "unknown_task"].some((code) => isLongJobsError(error, code));
}

/** A handler need not await every call: the signal tells it to stop, so an unread rejection is no crash. */
function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(ignore);
  return promise;
}

function ignore(): void {}

function isFulfilled(promise: Promise<unknown> | undefined): Promise<boolean> {
  return Promise.resolve(promise).then(
    () => true,
    () => false,
  );
}
