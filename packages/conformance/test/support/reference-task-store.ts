import {
  applyTaskPatch,
  storeErrors,
  TaskWatchers,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
  type WatchableTaskStore,
} from "@longjobs/core";

import type { StoreFactory } from "../../src/index.ts";

export interface Entry {
  record: TaskRecord;
  bornAtMs: number;
}

/** How a handle came to be. */
export type Opening = "first" | "second" | "reopen" | "crash";

/** The "disk" behind the handles of one test, with a clock of its own. */
export class Backing {
  readonly entries = new Map<string, Entry>();
  readonly watchers = new TaskWatchers();
  /** For wrong stores: what they keep beside the records. */
  readonly notes = new Map<string, unknown>();
  nowMs = Date.now();
  handles = 0;
}

export const maxRecordBytes = 64 * 1024;

/** A right store of the profile `shared`, in small steps that a wrong store can override one by one. */
export class ReferenceTaskStore implements TaskStore, WatchableTaskStore {
  protected readonly backing: Backing;
  protected readonly opening: Opening;
  protected closed = false;

  constructor(backing: Backing, opening: Opening) {
    this.backing = backing;
    this.opening = opening;
    this.backing.handles += 1;
  }

  async create(record: TaskRecord): Promise<void> {
    this.assertOpen();
    if (this.live(record.taskId) !== undefined) throw storeErrors.taskExists(record.taskId);
    this.assertFits(record);
    this.put({ record: this.encode(record), bornAtMs: this.backing.nowMs });
    this.notify(record.taskId);
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    this.assertOpen();
    const entry = this.live(taskId);
    return entry && this.decode(entry.record);
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    this.assertOpen();
    const entry = this.live(taskId);
    if (entry === undefined) throw storeErrors.unknownTask(taskId);
    const { record, bornAtMs } = entry;
    if (!this.matches(record, expectedVersion)) {
      throw storeErrors.versionConflict(taskId, expectedVersion, record.version);
    }
    const next = this.apply(record, this.encodePatch(patch));
    this.assertFits(next, patch);
    this.put({ record: next, bornAtMs });
    this.notify(taskId);
    return next.version;
  }

  async sweep(): Promise<number> {
    this.assertOpen();
    const expired = [...this.backing.entries.values()].filter((entry) => this.isSwept(entry));
    for (const { record } of expired) this.backing.entries.delete(record.taskId);
    return expired.length;
  }

  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    this.assertOpen();
    return this.backing.watchers.add(taskId, onChange);
  }

  async close(): Promise<void> {
    if (!this.closed) this.backing.handles -= 1;
    this.closed = true;
  }

  protected assertOpen(): void {
    if (this.closed) throw storeErrors.storeClosed();
  }

  protected find(taskId: string): Entry | undefined {
    return this.backing.entries.get(taskId);
  }

  protected live(taskId: string): Entry | undefined {
    const entry = this.find(taskId);
    return entry === undefined || this.isExpired(entry) ? undefined : entry;
  }

  protected endsAtMs({ record, bornAtMs }: Entry): number {
    return record.ttlMs === null ? Infinity : bornAtMs + record.ttlMs;
  }

  protected isExpired(entry: Entry): boolean {
    return this.backing.nowMs >= this.endsAtMs(entry);
  }

  protected isSwept(entry: Entry): boolean {
    return this.isExpired(entry);
  }

  protected matches(record: TaskRecord, expectedVersion: number): boolean {
    return record.version === expectedVersion;
  }

  protected apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
    return { ...applyTaskPatch(record, patch) };
  }

  protected put(entry: Entry): void {
    this.backing.entries.set(entry.record.taskId, entry);
  }

  protected notify(taskId: string): void {
    this.backing.watchers.notify(taskId);
  }

  protected assertFits(record: TaskRecord, _patch?: TaskPatch): void {
    const bytes = JSON.stringify(record).length;
    if (bytes > maxRecordBytes) throw storeErrors.recordTooLarge(record.taskId, bytes, maxRecordBytes);
  }

  protected encode(record: TaskRecord): TaskRecord {
    return structuredClone(record);
  }

  protected encodePatch(patch: TaskPatch): TaskPatch {
    return Object.fromEntries(Object.entries(patch).map(([field, value]) => [field, structuredClone(value)]));
  }

  protected decode(record: TaskRecord): TaskRecord {
    return structuredClone(record);
  }
}

/** The class of {@link ReferenceTaskStore} or of a wrong store made from it. */
export type ReferenceStoreClass = new (backing: Backing, opening: Opening) => ReferenceTaskStore;

/** A factory with every ability. */
export function referenceFactory(Store: ReferenceStoreClass = ReferenceTaskStore): StoreFactory {
  return () => {
    const backing = new Backing();
    const store = new Store(backing, "first");
    return {
      store,
      maxRecordBytes,
      advanceTime: (ms) => {
        backing.nowMs += ms;
      },
      second: () => new Store(backing, "second"),
      reopen: async () => {
        await store.close();
        return new Store(backing, "reopen");
      },
      crash: () => new Store(backing, "crash"),
    };
  };
}

/** Lets timers run once: the gap between two steps of a store that takes no lock. */
export function gap(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

/** Applies `change` to every JSON value inside, from the leaves up. */
export function mapJson(value: unknown, change: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return change(value.map((member) => mapJson(member, change)));
  if (typeof value !== "object" || value === null) return change(value);
  const copy = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, mapJson(member, change)] as const),
  );
  return change(copy);
}
