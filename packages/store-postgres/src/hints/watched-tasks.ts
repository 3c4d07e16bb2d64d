import { TaskWatchers, type ErrorListener } from "@longjobs/core";
import type { QuietReporter } from "../quiet-reporter.ts";
import { hintKey } from "./hint-payload.ts";

/** What the watches need of their store. */
export interface WatchedTasksParts {
  /** The versions of those of these tasks that are there. */
  readonly findVersions: (taskIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  /** How often to look, in milliseconds, while nothing is heard. */
  readonly watchPollMs: number;
  /** How often to look while changes are heard: one whose author died before it told is found so. */
  readonly echoMs: number;
  readonly isHearing: () => boolean;
  readonly reporter: QuietReporter;
  readonly onError: ErrorListener | undefined;
}

interface Watched {
  watches: number;
  /** The version last known; `undefined` when nothing is known yet, `""` when there was no such task. */
  version: string | undefined;
}

/** Tasks in one statement of a look. */
const LOOK_BATCH = 1_000;

/** Versions that are remembered of what this store wrote last: whoever creates or claims a task soon watches it. */
const MAX_WRITTEN = 1_000;

/**
 * The watches of one store. A change by the store itself is told at once; one by another process when a
 * notification says so, or when a look finds another version. A look is one small statement for all watched tasks
 * together; it holds no connection in between.
 */
export class WatchedTasks {
  readonly #parts: WatchedTasksParts;
  readonly #listeners: TaskWatchers;
  readonly #watched = new Map<string, Watched>();
  /** The ids of watched tasks by what notifications call them. */
  readonly #byKey = new Map<string, string>();
  /** What this store wrote last, the oldest first. */
  readonly #written = new Map<string, string>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #lookedAtMs = 0;
  #isLooking = false;

  constructor(parts: WatchedTasksParts) {
    this.#parts = parts;
    this.#listeners = new TaskWatchers(parts.onError);
  }

  /** Resolves, to what ends the watch, when no later change goes unnoticed. */
  async add(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    const end = this.#listeners.add(taskId, onChange);
    const watched = this.#watched.get(taskId) ?? { watches: 0, version: undefined };
    watched.watches += 1;
    this.#watched.set(taskId, watched);
    this.#byKey.set(hintKey(taskId), taskId);
    this.#timer ??= this.#lookRegularly();
    if (watched.version === undefined) await this.#findFirst(taskId, watched);
    let isOver = false;
    return async () => {
      if (isOver) return;
      isOver = true;
      await end();
      watched.watches -= 1;
      if (watched.watches === 0) this.#forget(taskId);
    };
  }

  /** After a change by this store: what others did before it is not looked for any more. */
  changed(taskId: string, version: string): void {
    this.#written.delete(taskId);
    this.#written.set(taskId, version);
    if (this.#written.size > MAX_WRITTEN) this.#written.delete(this.#written.keys().next().value ?? "");
    const watched = this.#watched.get(taskId);
    if (watched === undefined) return;
    watched.version = version;
    this.#listeners.notify(taskId);
  }

  /** After a notification. */
  hint(key: string): void {
    const taskId = this.#byKey.get(key);
    if (taskId !== undefined) this.#listeners.notify(taskId);
  }

  /** Looks at every watched task now, after a time in which notifications may have been missed. */
  lookAtAll(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#lookedAtMs = performance.now();
    void this.#look([...this.#watched.keys()]).finally(() => {
      this.#isLooking = false;
    });
  }

  clear(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#listeners.clear();
    this.#watched.clear();
    this.#byKey.clear();
    this.#written.clear();
  }

  /**
   * With which version the watch begins. What others did since a write of our own is a change: an engine that claims a
   * task and then watches it hears of a cancel that came in between.
   */
  async #findFirst(taskId: string, watched: Watched): Promise<void> {
    watched.version = this.#written.get(taskId);
    const looking = this.#look([taskId]);
    if (watched.version === undefined) await looking;
  }

  #lookRegularly(): ReturnType<typeof setInterval> {
    const { echoMs, isHearing, watchPollMs } = this.#parts;
    this.#lookedAtMs = performance.now();
    const timer = setInterval(() => {
      if (!isHearing() || performance.now() - this.#lookedAtMs >= echoMs) this.lookAtAll();
    }, watchPollMs);
    timer.unref();
    return timer;
  }

  /** Never rejects: what was not found now is found by the next look. */
  async #look(taskIds: readonly string[]): Promise<void> {
    try {
      for (let at = 0; at < taskIds.length; at += LOOK_BATCH) {
        const batch = taskIds.slice(at, at + LOOK_BATCH);
        const versions = await this.#parts.findVersions(batch);
        for (const taskId of batch) this.#compare(taskId, versions.get(taskId) ?? "");
      }
    } catch (error) {
      this.#parts.reporter.report("look", error);
    }
  }

  #compare(taskId: string, version: string): void {
    const watched = this.#watched.get(taskId);
    if (watched === undefined || watched.version === version) return;
    const isFirst = watched.version === undefined;
    watched.version = version;
    if (!isFirst) this.#listeners.notify(taskId);
  }

  #forget(taskId: string): void {
    this.#watched.delete(taskId);
    this.#byKey.delete(hintKey(taskId));
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
