import { afterEach, expect, vi } from "vitest";

import { MemoryTaskStore, TaskLifecycle } from "../../src/index.ts";
import type { TaskLifecycleOptions, TaskStore } from "../../src/index.ts";

/** An engine on a store, with what it reported in the background. */
export interface Engine {
  readonly lifecycle: TaskLifecycle;
  readonly store: TaskStore;
  readonly errors: unknown[];
}

let started: Engine[] = [];

/** Starts an engine that is closed after the test; the test fails if it leaks or reports what nobody took. */
export function startEngine(options: Partial<TaskLifecycleOptions> = {}): Engine {
  const errors: unknown[] = [];
  const store = options.store ?? new MemoryTaskStore(options.now === undefined ? {} : { now: options.now });
  const lifecycle = new TaskLifecycle({ onError: (error) => errors.push(error), ...options, store });
  const engine = { lifecycle, store, errors };
  started.push(engine);
  return engine;
}

afterEach(async () => {
  vi.useRealTimers();
  const engines = started;
  started = [];
  for (const { lifecycle } of engines) await lifecycle.close({ shutdownGraceMs: 0 });
  for (const { errors, lifecycle } of engines) {
    await vi.waitFor(() =>
      expect(lifecycle.stats).toMatchObject({ attempts: 0, queuedWrites: 0, watchedTasks: 0 }),
    );
    expect(errors, "reported in the background, and not expected").toEqual([]);
  }
});

/** Takes what was reported so far. */
export function takeErrors({ errors }: Engine): unknown[] {
  return errors.splice(0);
}
