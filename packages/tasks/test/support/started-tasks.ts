import { MemoryTaskStore, type TaskRecord, type TaskStore } from "@longjobs/core";
import { afterEach, expect, vi } from "vitest";

import { createTasks, type Tasks, type TasksOptions } from "../../src/index.ts";
import { SpyStore } from "./spy-store.ts";

/** Tasks on a watched store, with what they reported in the background. */
export interface StartedTasks {
  readonly tasks: Tasks;
  readonly store: SpyStore;
  readonly errors: unknown[];
}

let started: StartedTasks[] = [];

/** Tasks that everyone shares unless `scope` is given. They are closed after the test, which fails if they leak or report. */
export function startTasks(
  options: Partial<TasksOptions> & { readonly store?: TaskStore } = {},
): StartedTasks {
  const errors: unknown[] = [];
  const clock = options.now === undefined ? {} : { now: options.now };
  const store =
    options.store instanceof SpyStore
      ? options.store
      : new SpyStore(options.store ?? new MemoryTaskStore(clock));
  const tasks = createTasks({
    scope: null,
    pollIntervalMs: 10,
    waitPollMs: 50,
    onError: (error) => errors.push(error),
    ...options,
    store,
  });
  const entry = { tasks, store, errors };
  started.push(entry);
  return entry;
}

/** Takes what was reported so far. */
export function takeErrors({ errors }: StartedTasks): unknown[] {
  return errors.splice(0);
}

/** The record as text: for showing that nothing, not one byte, has changed. */
export async function recordText(store: SpyStore, taskId: string): Promise<string> {
  const record: TaskRecord | undefined = await store.inner.get(taskId);
  return JSON.stringify(record);
}

afterEach(async () => {
  vi.useRealTimers();
  const all = started;
  started = [];
  for (const { tasks } of all) await tasks.close({ shutdownGraceMs: 0 });
  for (const { tasks, errors } of all) {
    await vi.waitFor(() =>
      expect(tasks.stats()).toMatchObject({ attempts: 0, queuedWrites: 0, watchedTasks: 0 }),
    );
    expect(errors, "reported in the background, and not expected").toEqual([]);
  }
});
