import { reportBackgroundError, type ErrorListener } from "./report-error.ts";

/**
 * The listeners of one store, by task: the whole of `watch` for a store that learns of every change itself
 * (C24). An id without listeners has no entry.
 */
export class TaskWatchers {
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #onError: ErrorListener | undefined;

  constructor(onError?: ErrorListener) {
    this.#onError = onError;
  }

  /** How many tasks are watched. */
  get size(): number {
    return this.#listeners.size;
  }

  /** Registers a listener; the returned function ends it and may be called twice. */
  add(taskId: string, onChange: () => void): () => Promise<void> {
    // A wrapper of its own for each watch: the same function may be registered twice and ended once.
    const listener = (): void => onChange();
    const listeners = this.#listeners.get(taskId) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(taskId, listeners);
    return async () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(taskId) === listeners) this.#listeners.delete(taskId);
    };
  }

  /** Tells the listeners of a task that it changed. Call it after the change can be read. */
  notify(taskId: string): void {
    const listeners = this.#listeners.get(taskId);
    if (listeners === undefined) return;
    for (const listener of Array.from(listeners)) {
      try {
        listener();
      } catch (error) {
        reportBackgroundError(error, this.#onError);
      }
    }
  }

  /** Forgets every listener. */
  clear(): void {
    this.#listeners.clear();
  }
}
