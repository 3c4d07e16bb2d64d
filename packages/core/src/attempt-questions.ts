import { allAnswers, inboxStatus, openQuestions, readAnswers, type Inbox } from "./inbox.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { Listeners } from "./listeners.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import { prepareQuestions } from "./prepare-questions.ts";
import type { TaskChanges } from "./task-changes.ts";
import type { InputRequest, InputResponse, TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";
import type { WritePlan } from "./task-writer.ts";

/** What questions need of the attempt that asks them. */
export interface AskingAttempt {
  readonly taskId: string;
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly client: NonNullable<TaskRecord["work"]>["client"];
  readonly options: ResolvedLifecycleOptions;
  readonly changes: TaskChanges;
  /** Writes as this attempt, and waits for a store that is away. */
  readonly write: (plan: WritePlan) => Promise<void>;
  /** The record while it is this attempt's. */
  readonly read: () => Promise<TaskRecord>;
}

/** The questions of one attempt: asks them, waits for their answers, and gives each answer once. */
export class AttemptQuestions {
  readonly #asking: AskingAttempt;
  readonly #delivered = new Set<string>();
  /** How many calls of `ask` wait for each key. */
  readonly #awaited = new Map<string, number>();
  readonly #waitListeners: Listeners<[waiting: boolean]>;

  constructor(asking: AskingAttempt) {
    this.#asking = asking;
    this.#waitListeners = new Listeners(asking.options.reportError);
  }

  /** Calls `listener` when the attempt begins to wait for answers, and when it has them all. */
  onWaiting(listener: (waiting: boolean) => void): () => void {
    return this.#waitListeners.add(listener);
  }

  /** Nobody waits any more. */
  end(): void {
    this.#waitListeners.clear();
  }

  /** Opens the questions that are not open yet, and resolves when each has its answer. @throws see `TaskHandle.requestInput` */
  async ask(requests: { readonly [key: string]: InputRequest }): Promise<Record<string, InputResponse>> {
    const { attempt, changes, client, options, signal, taskId, write } = this.#asking;
    signal.throwIfAborted();
    const questions = await prepareQuestions(requests, client, options);
    signal.throwIfAborted();
    const keys = questions.map(({ key }) => key);
    // Before the question can be read: its answer is awaited from the first moment, and is nobody else's.
    this.#countAwaited(keys, 1);
    try {
      await write((record) => {
        if (record.cancelRequestedAt !== undefined) throw lifecycleErrors.cancelled(taskId);
        return inboxPatch(record, openQuestions(record.inputs ?? noInbox, questions, attempt));
      });
      const look = async (): Promise<[string, InputResponse][] | undefined> => {
        const record = await this.#readIfThere();
        return record === undefined ? undefined : readAnswers(record.inputs ?? noInbox, keys);
      };
      const answers = await changes.until(taskId, look, signal);
      for (const key of keys) this.#delivered.add(key);
      return Object.fromEntries(answers);
    } catch (error) {
      // Why the work has to stop says more than what was refused because of it.
      signal.throwIfAborted();
      throw error;
    } finally {
      this.#countAwaited(keys, -1);
    }
  }

  /** The answers in the record that nobody has been given, and nobody waits for. */
  takeFresh({ inputs }: TaskRecord): { readonly [key: string]: InputResponse } {
    const fresh = allAnswers(inputs ?? noInbox).filter(
      ([key]) => !this.#delivered.has(key) && !this.#awaited.has(key),
    );
    for (const [key] of fresh) this.#delivered.add(key);
    return Object.fromEntries(fresh);
  }

  #countAwaited(keys: readonly string[], change: 1 | -1): void {
    const waited = this.#awaited.size > 0;
    for (const key of keys) {
      const count = (this.#awaited.get(key) ?? 0) + change;
      if (count === 0) this.#awaited.delete(key);
      else this.#awaited.set(key, count);
    }
    const waiting = this.#awaited.size > 0;
    if (waiting !== waited) this.#waitListeners.tell(waiting);
  }

  /** Who waits for a person waits on while the store is away: the next sign looks again. */
  async #readIfThere(): Promise<TaskRecord | undefined> {
    const { options, read } = this.#asking;
    try {
      return await read();
    } catch (error) {
      if (isLongJobsError(error) && error.code !== "store_unavailable") throw error;
      options.reportError(error);
      return undefined;
    }
  }
}

const noInbox: Inbox = Object.freeze({});

function inboxPatch(record: TaskRecord, inputs: Inbox): TaskPatch | undefined {
  return inputs === (record.inputs ?? noInbox) ? undefined : { inputs, status: inboxStatus(inputs) };
}
