import type { LeasingTaskStore, TaskRecord, TaskStore, WatchableTaskStore } from "@longjobs/core";
import { canLease, canWatch } from "@longjobs/core";

import type { Need } from "./check.ts";
import { expectEqual } from "./expect.ts";
import type { Repair, StoreUnderTest } from "./store-under-test.ts";
import { waitFor } from "./wait.ts";

const day = 24 * 60 * 60 * 1000;

/** What a running check sees: the store, and the abilities of its factory. */
export class CheckContext {
  readonly store: TaskStore;
  readonly maxRecordBytes: number;
  /** The unit in which checks give TTLs: a minute, or as short as waiting in real time can bear. */
  readonly unitMs: number;
  /** Longer than any default lifetime a store could have. In real time: as long as waiting can bear. */
  readonly longMs: number;
  readonly #subject: StoreUnderTest;
  readonly #open = new Set<TaskStore>();

  constructor(subject: StoreUnderTest) {
    this.#subject = subject;
    this.store = subject.store;
    this.maxRecordBytes = subject.maxRecordBytes ?? 8 * 1024 * 1024;
    const moves = subject.advanceTime !== undefined;
    this.unitMs = moves ? 60_000 : 250;
    this.longMs = moves ? 400 * day : 750;
    this.#open.add(subject.store);
  }

  /** True when the factory, or the store itself, offers what a check needs. */
  has(need: Need): boolean {
    if (need === "time") return this.#subject.advanceTime !== undefined || this.#subject.realTime === true;
    if (need === "watch") return canWatch(this.store);
    if (need === "claim") return canLease(this.store);
    return this.#subject[need] !== undefined;
  }

  /** Lets this much time pass on the store's clock. */
  async elapse(ms: number): Promise<void> {
    if (this.#subject.advanceTime !== undefined) return this.#subject.advanceTime(ms);
    const endAtMs = performance.now() + ms;
    await waitFor(() => performance.now() >= endAtMs, "The real clock", ms + 60_000);
  }

  /**
   * Lets nearly this much time pass: late enough to meet a store that expires early, and far enough from the
   * end for a clock that ticks on by itself.
   */
  elapseAlmost(ms: number): Promise<void> {
    return this.elapse(this.#subject.advanceTime === undefined ? ms / 2 : ms - 1_000);
  }

  /** Fails unless the id looks unknown now. In real time the two clocks may be a little apart: it may take a moment. */
  async expectGone(taskId: string, subject: string, store: TaskStore = this.store): Promise<void> {
    if (this.#subject.advanceTime !== undefined)
      return expectEqual(await store.get(taskId), undefined, subject);
    await waitFor(async () => (await store.get(taskId)) === undefined, subject);
  }

  /** Fails unless the fact holds now. In real time the two clocks may be a little apart: it may take a moment. */
  async expectNow(fact: () => Promise<boolean>, subject: string): Promise<void> {
    if (this.#subject.advanceTime === undefined) return waitFor(fact, subject);
    if (!(await fact())) throw new Error(`${subject}: that does not hold.`);
  }

  /** Fails unless `get` resolves to exactly this record. */
  async expectStored(record: TaskRecord, subject: string, store: TaskStore = this.store): Promise<void> {
    expectEqual(await store.get(record.taskId), record, subject);
  }

  /** Another handle on the same backing data. */
  second(): Promise<TaskStore> {
    return this.#opened(this.#subject.second);
  }

  /** The same data after a clean close. The earlier handle is closed. */
  reopen(): Promise<TaskStore> {
    this.#open.delete(this.store);
    return this.#opened(this.#subject.reopen);
  }

  /** The same data after a crash. The earlier handle is abandoned as it is. */
  crash(): Promise<TaskStore> {
    this.#open.delete(this.store);
    return this.#opened(this.#subject.crash);
  }

  /** Makes the backend fail until the returned function repairs it. */
  async fault(): Promise<Repair> {
    const { fault } = this.#subject;
    if (fault === undefined) throw new Error("The check did not name what it needs.");
    return fault();
  }

  /** Closes the store under test as part of the check. */
  close(): Promise<void> {
    this.#open.delete(this.store);
    return this.store.close();
  }

  watch(
    taskId: string,
    onChange: () => void,
    store: TaskStore = this.store,
  ): ReturnType<WatchableTaskStore["watch"]> {
    if (!canWatch(store)) throw new Error("The store has no watch().");
    return store.watch(taskId, onChange);
  }

  /** A store as one that can claim and renew. */
  leasing(store: TaskStore = this.store): TaskStore & LeasingTaskStore {
    if (!canLease(store)) throw new Error("The store has no claim() and renew().");
    return store;
  }

  /** Closes what the check left open, then lets the factory remove its data. */
  async dispose(): Promise<void> {
    try {
      for (const store of this.#open) await store.close();
    } finally {
      await this.#subject.dispose?.();
    }
  }

  async #opened(open: (() => Promise<TaskStore> | TaskStore) | undefined): Promise<TaskStore> {
    if (open === undefined) throw new Error("The check did not name what it needs.");
    const store = await open();
    this.#open.add(store);
    return store;
  }
}
