import { isExclusive } from "@longjobs/core";
import type { TaskPatch, TaskRecord, TaskStore, WatchableTaskStore } from "@longjobs/core";
import { expect } from "vitest";

import { nextTurn } from "./turns.ts";

type Method = "create" | "get" | "update";

/** Counts the calls of a store, and holds them back or fails them when a test says so. */
export class SpyStore implements TaskStore {
  readonly inner: TaskStore;
  readonly exclusive: boolean;
  readonly calls: { method: Method; taskId: string }[] = [];
  /** Runs before each call; what it throws, the call rejects with. */
  before: (method: Method, taskId: string) => Promise<void> | void = () => undefined;

  constructor(inner: TaskStore) {
    this.inner = inner;
    this.exclusive = isExclusive(inner);
  }

  async create(record: TaskRecord): Promise<void> {
    await this.#enter("create", record.taskId);
    return this.inner.create(record);
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    await this.#enter("get", taskId);
    return this.inner.get(taskId);
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    await this.#enter("update", taskId);
    return this.inner.update(taskId, patch, expectedVersion);
  }

  sweep(): Promise<number> {
    return this.inner.sweep();
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  async #enter(method: Method, taskId: string): Promise<void> {
    this.calls.push({ method, taskId });
    await this.before(method, taskId);
  }
}

/** As {@link SpyStore}; it tells of changes, and who is told. */
export class WatchableSpyStore extends SpyStore implements WatchableTaskStore {
  readonly watched = new Set<object>();
  readonly #watchable: WatchableTaskStore;

  constructor(inner: TaskStore & WatchableTaskStore) {
    super(inner);
    this.#watchable = inner;
  }

  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    const end = await this.#watchable.watch(taskId, onChange);
    const watch = { taskId };
    this.watched.add(watch);
    return async () => {
      this.watched.delete(watch);
      await end();
    };
  }
}

/** Resolves when a wait that looks every 5 ms is over: the store is not looked at any more. */
export async function untilUnwatched(store: SpyStore): Promise<void> {
  await expect
    .poll(
      async () => {
        const before = store.calls.length;
        const from = performance.now();
        while (performance.now() - from < 50) await nextTurn();
        return store.calls.length - before;
      },
      { timeout: 5_000 },
    )
    .toBe(0);
}
