import { isRefusal } from "./attempt.ts";
import { acceptAnswers, answeredKeys, inboxStatus, withdrawQuestions } from "./inbox.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { parseResponses } from "./parse-responses.ts";
import type { Recovery } from "./recovery.ts";
import { storeErrors } from "./store-errors.ts";
import type { TakeOver } from "./take-over.ts";
import type { TaskChanges } from "./task-changes.ts";
import { TaskFeed } from "./task-feed.ts";
import { isTaskId } from "./task-id.ts";
import { isTerminal, type TaskProgress, type TaskRecord } from "./task-record.ts";
import { canLease, type TaskPatch } from "./task-store.ts";
import { toDetailedTask, type DetailedTask } from "./task-view.ts";
import type { TaskWriter } from "./task-writer.ts";
import { terminalPatch } from "./terminal-patch.ts";
import { visibleTasks } from "./visible-tasks.ts";
import { waitForChange, type WaitOptions } from "./wait-for-change.ts";

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

/** Options of {@link TaskLifecycle.waitForChange}. */
export interface WaitForChangeOptions extends ScopedCall, WaitOptions {}

/** Options of {@link TaskLifecycle.followTasks}. */
export interface FollowTasksOptions extends ScopedCall {
  /** Called when a task may have changed: time to take. It may be called for nothing. */
  readonly onChange: () => void;
}

/** What the calls of clients work with. */
export interface ClientCallsContext {
  readonly options: ResolvedLifecycleOptions;
  readonly writer: TaskWriter;
  readonly changes: TaskChanges;
  readonly takeOver: TakeOver;
  readonly recovery: Recovery;
  /** How many more handlers may begin here now. */
  readonly freeSlots: () => number;
  /** True when this engine begins no work any more. */
  readonly isClosing: () => boolean;
  /** Aborted when clients are served no more. */
  readonly closed: AbortSignal;
  /** @throws `store_closed` when clients are served no more */
  readonly assertOpen: () => void;
}

/** What clients may do with tasks: ask, answer, cancel and follow, each only its own. */
export class ClientCalls {
  readonly #context: ClientCallsContext;

  constructor(context: ClientCallsContext) {
    this.#context = context;
  }

  /** See `TaskLifecycle.endIfOrphan`. */
  async endIfOrphan(taskId: string, call: ScopedCall): Promise<DetailedTask> {
    this.#context.assertOpen();
    const record = await this.readVisible(taskId, call);
    const taken = await this.#context.takeOver.takeIfFree(record);
    return toDetailedTask(taken === undefined ? record : await this.#context.recovery.end(taken));
  }

  /** See `TaskLifecycle.getTask`. */
  async getTask(taskId: string, call: ScopedCall): Promise<DetailedTask> {
    return toDetailedTask(await this.readAnswerable(taskId, call));
  }

  /** See `TaskLifecycle.getProgress`. */
  async getProgress(taskId: string, call: ScopedCall): Promise<TaskProgress | undefined> {
    this.#context.assertOpen();
    return (await this.readVisible(taskId, call)).progress;
  }

  /** See `TaskLifecycle.updateTask`. */
  async updateTask(
    taskId: string,
    responses: { readonly [wireKey: string]: unknown },
    options: UpdateTaskOptions,
  ): Promise<readonly string[]> {
    this.#context.assertOpen();
    const answers = parseResponses(responses, options.malformedKeys ?? [], this.#context.options.jsonLimits);
    await this.readVisible(taskId, options);
    const rules = {
      validate: this.#context.options.validateAnswer,
      // The whole id: ids ordered by time begin alike, and a key used twice would be asked for ever.
      freshKey: (key: string) => `${key}~${this.#context.options.randomId()}`,
    };
    let taken: readonly string[] = [];
    await this.#context.writer.write(taskId, (record, retrying) => {
      if (isTerminal(record.status) || record.inputs === undefined) return undefined;
      const inputs = acceptAnswers(record.inputs, answers, rules);
      if (inputs !== record.inputs) taken = answeredKeys(inputs, record.inputs);
      else if (!retrying) taken = [];
      return inputs === record.inputs ? undefined : { inputs, status: inboxStatus(inputs) };
    });
    return taken;
  }

  /** See `TaskLifecycle.cancelTask`. */
  async cancelTask(taskId: string, call: CancelTaskOptions): Promise<void> {
    this.#context.assertOpen();
    await this.readVisible(taskId, call);
    const record = await this.#context.writer.write(taskId, (found) =>
      this.#cancelPatch(found, call.atOnce === true),
    );
    try {
      const taken = await this.#context.takeOver.takeIfIdle(record);
      if (taken !== undefined) await this.#context.recovery.end(taken);
    } catch (error) {
      // The intent is kept: whoever takes the task ends it.
      if (!isRefusal(error)) this.#context.options.reportError(error);
    }
  }

  /** See `TaskLifecycle.waitForChange`. */
  async waitForChange(taskId: string, options: WaitForChangeOptions): Promise<DetailedTask> {
    const read = (): Promise<TaskRecord> => this.readAnswerable(taskId, options);
    const context = { closing: this.#context.closed, timers: this.#context.options.timers };
    return waitForChange(this.#context.changes, taskId, read, options, context);
  }

  /** See `TaskLifecycle.followTasks`. */
  async followTasks(taskIds: readonly string[], { onChange, scope }: FollowTasksOptions): Promise<TaskFeed> {
    this.#context.assertOpen();
    const visible = await visibleTasks(taskIds, (taskId) => this.readVisible(taskId, { scope }));
    this.#context.assertOpen();
    return new TaskFeed(visible, {
      changes: this.#context.changes,
      options: this.#context.options,
      onChange,
      read: (taskId) =>
        this.#context.closed.aborted
          ? this.readVisible(taskId, { scope })
          : this.readAnswerable(taskId, { scope }),
    });
  }

  /** The record as it may be shown: a task that was left alone for too long has been ended first. */
  async readAnswerable(taskId: string, call: ScopedCall): Promise<TaskRecord> {
    this.#context.assertOpen();
    const record = await this.readVisible(taskId, call);
    if (isTerminal(record.status)) this.#context.takeOver.forget(taskId);
    if (isTerminal(record.status) || !this.#mayBeTaken(record)) return record;
    const taken = await this.#context.takeOver.takeIfFree(record);
    if (taken === undefined) return record;
    // Whoever asked is answered, whatever becomes of the work.
    await this.#context.recovery.goOn(taken).catch(this.#context.options.reportError);
    return this.readVisible(taskId, call);
  }

  /**
   * Whether asking about a task may take it over. A store that can claim has recovery for that, until a task has been left
   * alone for too long; on others nobody but the asker notices.
   */
  #mayBeTaken(record: TaskRecord): boolean {
    const { store, runner, now, orphanMaxMs } = this.#context.options;
    if (this.#context.isClosing()) return false;
    if (now() - Date.parse(record.lastUpdatedAt) >= orphanMaxMs) return true;
    if (canLease(store)) return false;
    if (record.cancelRequestedAt !== undefined) return true;
    const rules = runner?.tools().get(record.work?.tool ?? "");
    if (rules === undefined) return false;
    return rules.onInterrupted === "fail" || runner?.dispatch !== undefined || this.#context.freeSlots() > 0;
  }

  /** A foreign task is the same error as an unknown one. */
  async readVisible(taskId: string, { scope }: ScopedCall): Promise<TaskRecord> {
    const record = await this.read(taskId);
    if (record.scope !== scope) throw storeErrors.unknownTask(taskId);
    return record;
  }

  /** A hostile id never reaches the store. */
  async read(taskId: string): Promise<TaskRecord> {
    if (!isTaskId(taskId)) throw storeErrors.unknownTask(shownId(taskId));
    return this.#context.writer.read(taskId);
  }

  #cancelPatch(record: TaskRecord, atOnce: boolean): TaskPatch | undefined {
    if (isTerminal(record.status)) return undefined;
    const cancelRequestedAt = record.cancelRequestedAt ?? new Date(this.#context.options.now()).toISOString();
    if (atOnce) {
      const ending = { token: this.#context.options.randomId(), nowMs: this.#context.options.now() };
      return { ...terminalPatch(record, { status: "cancelled" }, ending), cancelRequestedAt };
    }
    const inputs = record.inputs && withdrawQuestions(record.inputs);
    if (record.cancelRequestedAt !== undefined && inputs === record.inputs) return undefined;
    return {
      cancelRequestedAt,
      ...(inputs === undefined ? {} : { inputs, status: inboxStatus(inputs) }),
    };
  }
}

/** A hostile id is cut, and what is no text is not turned into one: that could throw. */
function shownId(taskId: unknown): string {
  return typeof taskId === "string" ? taskId.slice(0, 64) : `(${typeof taskId})`;
}
