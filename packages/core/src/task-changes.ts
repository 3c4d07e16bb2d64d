import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { TaskRecord } from "./task-record.ts";
import { canWatch } from "./task-store.ts";
import { toDetailedTask, type DetailedTask } from "./task-view.ts";

/** Hears of a task: the record after a write of this engine, or nothing but a hint to look. */
export type ChangeListener = (record?: TaskRecord) => void;

/** A hint that was lost makes a wait longer by at most a sixtieth of itself, and by no more than a lease. */
const looksPerWait = 60;

interface Topic {
  readonly listeners: Set<ChangeListener>;
  /** Those that wait, and for whom the engine looks by itself. */
  readonly waiting: Set<ChangeListener>;
  stopPolling: (() => void) | undefined;
  unwatch: Promise<(() => Promise<void>) | undefined> | undefined;
}

/**
 * Signs that tasks changed. Writes of this engine are told at once; changes by others come as hints of the
 * store's `watch`, where it has one, and by looking while somebody waits, every `waitPollMs`: a lost hint costs
 * a little time and never an answer. Who has waited for long on a store that watches is looked for more rarely: thousands of
 * questions that are open for days cost next to nothing.
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
    if (poll) {
      topic.waiting.add(registered);
      // Whoever comes anew waits anew.
      topic.stopPolling?.();
      topic.stopPolling = this.#poll(topic);
    }
    return () => {
      if (!topic.listeners.delete(registered)) return;
      if (topic.waiting.delete(registered) && topic.waiting.size === 0) topic.stopPolling?.();
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

  /** Gives those who wait a sign again and again. The returned function ends it. */
  #poll({ waiting }: Topic): () => void {
    const { leaseMs, monotonicNow, store, timers, waitPollMs } = this.#options;
    const startMs = monotonicNow();
    const longestMs = canWatch(store) ? Math.max(waitPollMs, leaseMs) : waitPollMs;
    const later = (): (() => void) => {
      const shareMs = Math.round((monotonicNow() - startMs) / looksPerWait);
      return timers.later(look, Math.min(Math.max(waitPollMs, shareMs), longestMs));
    };
    const look = (): void => {
      cancel = later();
      this.#tellAll(waiting);
    };
    let cancel = later();
    return () => cancel();
  }

  #tell(taskId: string, record?: TaskRecord): void {
    this.#tellAll(this.#topics.get(taskId)?.listeners ?? new Set(), record);
  }

  #tellAll(listeners: ReadonlySet<ChangeListener>, record?: TaskRecord): void {
    for (const listener of Array.from(listeners)) this.#guard(() => listener(record));
  }

  #openTopic(taskId: string): Topic {
    const topic: Topic = {
      listeners: new Set(),
      waiting: new Set(),
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
