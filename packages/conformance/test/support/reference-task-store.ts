import {
  applyTaskPatch,
  isTerminal,
  LongJobsError,
  storeErrors,
  TaskWatchers,
  type ClaimOptions,
  type HeldLease,
  type Lease,
  type LeasingTaskStore,
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
  /** When the lease of a task ends. A task without an entry is held by nobody. */
  readonly leaseEndsAtMs = new Map<string, number>();
  readonly watchers = new TaskWatchers();
  /** For wrong stores: what they keep beside the records. */
  readonly notes = new Map<string, unknown>();
  nowMs = Date.now();
  handles = 0;
  /** While true, writes fail: by turns before and after they are committed. */
  failing = false;
  #failures = 0;

  nextFailure(): "before" | "after" | undefined {
    if (!this.failing) return undefined;
    this.#failures += 1;
    return this.#failures % 2 === 1 ? "before" : "after";
  }
}

export const maxRecordBytes = 64 * 1024;

/** A right store of the profile `shared`, in small steps that a wrong store can override one by one. */
export class ReferenceTaskStore implements TaskStore, WatchableTaskStore, LeasingTaskStore {
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
    this.setDeadline(record.taskId, record.lease?.durationMs);
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
    if (Object.hasOwn(patch, "lease")) this.setDeadline(taskId, next.lease?.durationMs);
    this.notify(taskId);
    return next.version;
  }

  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    this.assertOpen();
    this.assertClaim(owner, leaseMs, options.limit);
    const claimed: TaskRecord[] = [];
    for (const entry of this.candidates(options)) {
      if (this.isFull(claimed, options)) break;
      if (this.isFree(entry) && this.isWanted(entry.record, options))
        claimed.push(this.take(entry, owner, leaseMs));
    }
    return claimed;
  }

  async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    this.assertOpen();
    this.assertPositive(leaseMs);
    return leases.filter((lease) => !this.renewOne(lease, leaseMs)).map(({ taskId }) => taskId);
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

  protected assertClaim(owner: string, leaseMs: number, limit: number): void {
    if (owner === "") throw new TypeError("owner is empty");
    this.assertPositive(leaseMs);
    this.assertPositive(limit);
  }

  protected assertPositive(value: number): void {
    if (!Number.isInteger(value) || value < 1) throw new RangeError(`${value} is not a positive integer`);
  }

  protected candidates({ taskIds }: ClaimOptions): Entry[] {
    const entries = [...this.backing.entries.values()];
    return entries.filter(
      (entry) => !this.isExpired(entry) && (taskIds?.includes(entry.record.taskId) ?? true),
    );
  }

  protected isFull(claimed: readonly TaskRecord[], { limit }: ClaimOptions): boolean {
    return claimed.length >= limit;
  }

  protected isFree({ record: { taskId } }: Entry): boolean {
    return this.backing.nowMs >= (this.backing.leaseEndsAtMs.get(taskId) ?? -Infinity);
  }

  protected isWanted(record: TaskRecord, { tools }: ClaimOptions): boolean {
    if (isTerminal(record.status) || record.kind !== undefined) return false;
    if (tools === undefined || record.cancelRequestedAt !== undefined) return true;
    return record.work !== undefined && tools.includes(record.work.tool);
  }

  protected take({ record: before, bornAtMs }: Entry, owner: string, leaseMs: number): TaskRecord {
    const lease = this.newLease(before, owner, leaseMs);
    const record = { ...before, lease, version: before.version + 1 };
    this.put({ record, bornAtMs });
    this.setDeadline(record.taskId, leaseMs);
    this.notify(record.taskId);
    return this.given(record);
  }

  /** What a claim hands out. */
  protected given(record: TaskRecord): TaskRecord {
    return structuredClone(record);
  }

  protected newLease(_record: TaskRecord, owner: string, leaseMs: number): Lease {
    return { owner, token: crypto.randomUUID(), durationMs: leaseMs };
  }

  protected renewOne({ taskId, token }: HeldLease, leaseMs: number): boolean {
    const record = this.live(taskId)?.record;
    if (record === undefined || isTerminal(record.status) || record.lease?.token !== token) return false;
    this.setDeadline(taskId, leaseMs);
    return true;
  }

  protected setDeadline(taskId: string, durationMs: number | undefined): void {
    if (durationMs === undefined) this.backing.leaseEndsAtMs.delete(taskId);
    else this.backing.leaseEndsAtMs.set(taskId, this.backing.nowMs + durationMs);
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
    const failure = this.backing.nextFailure();
    if (failure === "before") throw this.unavailable();
    this.backing.entries.set(entry.record.taskId, entry);
    if (failure === "after") throw this.unavailable();
  }

  protected unavailable(): Error {
    return new LongJobsError("store_unavailable", "The backing data cannot be reached.", { retryable: true });
  }

  protected notify(taskId: string): void {
    this.backing.watchers.notify(taskId);
  }

  protected assertFits(record: TaskRecord, _patch?: TaskPatch): void {
    const bytes = JSON.stringify(record).length;
    if (bytes > maxRecordBytes) throw storeErrors.recordTooLarge(record.taskId, bytes, maxRecordBytes);
  }

  protected encode(record: TaskRecord): TaskRecord {
    const present = Object.entries(record).filter(([, value]) => value !== undefined);
    return structuredClone(Object.fromEntries(present) as TaskRecord);
  }

  protected encodePatch(patch: TaskPatch): TaskPatch {
    return Object.fromEntries(Object.entries(patch).map(([field, value]) => [field, structuredClone(value)]));
  }

  protected decode(record: TaskRecord): TaskRecord {
    return structuredClone(record);
  }
}

/** A right store of the profile `durable` that belongs to one process: its leases end when it is opened anew. */
export class ExclusiveReferenceTaskStore extends ReferenceTaskStore {
  readonly exclusive = true;

  constructor(backing: Backing, opening: Opening) {
    super(backing, opening);
    if (opening === "reopen" || opening === "crash") this.endLeases();
  }

  protected endLeases(): void {
    this.backing.leaseEndsAtMs.clear();
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
      fault: () => {
        backing.failing = true;
        return () => {
          backing.failing = false;
        };
      },
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
