import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { TaskRecord } from "./task-record.ts";
import { canWatch } from "./task-store.ts";
import { toDetailedTask, type DetailedTask } from "./task-view.ts";

/** Hears of a task: the record after a write of this engine, or nothing but a hint to look. */
export type ChangeListener = (record?: TaskRecord) => void;

interface Topic {
  readonly listeners: Set<ChangeListener>;
  pollers: number;
  stopPolling: (() => void) | undefined;
  unwatch: Promise<(() => Promise<void>) | undefined> | undefined;
}

/**
 * Signs that tasks changed. Writes of this engine are told at once; changes by others come as hints of the
 * store's `watch`, where it has one, and by looking every `waitPollMs` while somebody waits: a lost hint costs
 * a little time and never an answer.
 */
export class TaskChanges {
  readonly #options: ResolvedLifecycleOptions;
  readonly #topics = new Map<string, Topic>();
  readonly #onChanged = new Set<(task: DetailedTask) => void>();

  constructor(options: ResolvedLifecycleOptions) {
    this.#options = options;
  }

  /** Tasks that somebody listens to. */
  get size(): number {
    return this.#topics.size;
  }

  /** Calls `listener` with each task that this engine writes. The returned function ends it. */
  onTaskChanged(listener: (task: DetailedTask) => void): () => void {
    const registered = (task: DetailedTask): void => listener(task);
    this.#onChanged.add(registered);
    return () => {
      this.#onChanged.delete(registered);
    };
  }

  /** Tells everybody about a write of this engine. Call it after the write can be read. */
  publish(record: TaskRecord): void {
    if (this.#onChanged.size > 0) {
      const task = toDetailedTask(record);
      for (const listener of this.#onChanged) this.#guard(() => listener(task));
    }
    this.#tell(record.taskId, record);
  }

  /** Listens to one task; with `poll`, a hint comes at least every `waitPollMs`. The returned function ends it. */
  subscribe(taskId: string, listener: ChangeListener, poll: boolean): () => void {
    const topic = this.#topics.get(taskId) ?? this.#openTopic(taskId);
    const registered: ChangeListener = (record) => listener(record);
    topic.listeners.add(registered);
    if (poll && (topic.pollers += 1) === 1) {
      topic.stopPolling = this.#options.timers.repeat(() => this.#tell(taskId), this.#options.waitPollMs);
    }
    return () => {
      if (!topic.listeners.delete(registered)) return;
      if (poll && (topic.pollers -= 1) === 0) topic.stopPolling?.();
      if (topic.listeners.size === 0) this.#closeTopic(taskId, topic);
    };
  }

  /**
   * Looks, and looks again at every sign of a change, until `look` resolves to something. The listener is
   * registered before the first look, so that no change falls between them.
   *
   * @throws what `look` throws; the reason of `signal` when it is aborted.
   */
  async until<Value>(
    taskId: string,
    look: () => Promise<Value | undefined>,
    signal: AbortSignal,
  ): Promise<Value> {
    signal.throwIfAborted();
    let signs = 0;
    let wake = (): void => undefined;
    const sign = (): void => {
      signs += 1;
      wake();
    };
    const unsubscribe = this.subscribe(taskId, sign, true);
    signal.addEventListener("abort", sign);
    try {
      for (;;) {
        const seen = signs;
        const value = await look();
        if (value !== undefined) return value;
        if (signs === seen) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        signal.throwIfAborted();
      }
    } finally {
      signal.removeEventListener("abort", sign);
      unsubscribe();
    }
  }

  #tell(taskId: string, record?: TaskRecord): void {
    for (const listener of Array.from(this.#topics.get(taskId)?.listeners ?? []))
      this.#guard(() => listener(record));
  }

  #openTopic(taskId: string): Topic {
    const topic: Topic = {
      listeners: new Set(),
      pollers: 0,
      stopPolling: undefined,
      unwatch: this.#watch(taskId),
    };
    this.#topics.set(taskId, topic);
    return topic;
  }

  #closeTopic(taskId: string, topic: Topic): void {
    this.#topics.delete(taskId);
    topic.unwatch?.then((end) => end?.()).catch(this.#options.reportError);
  }

  /** A watch that cannot be had is reported; looking by interval goes on without it. */
  async #watch(taskId: string): Promise<(() => Promise<void>) | undefined> {
    const { store, reportError } = this.#options;
    if (!canWatch(store)) return undefined;
    try {
      return await store.watch(taskId, () => this.#tell(taskId));
    } catch (error) {
      reportError(error);
      return undefined;
    }
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.reportError(error);
    }
  }
}
