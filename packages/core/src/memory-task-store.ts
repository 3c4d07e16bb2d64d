import { assertClaim, assertLeaseMs, holdsLease, isClaimable, newLease } from "./claim-task.ts";
import { LeaseDeadlines } from "./lease-deadlines.ts";
import { normalizeJson } from "./normalize-json.ts";
import type { ErrorListener } from "./report-error.ts";
import { isExpired } from "./task-expiry.ts";
import { applyTaskPatch } from "./task-patch.ts";
import type { TaskRecord } from "./task-record.ts";
import { setOwn } from "./set-own.ts";
import { storeErrors } from "./store-errors.ts";
import type {
  ClaimOptions,
  ExclusiveTaskStore,
  HeldLease,
  LeasingTaskStore,
  TaskPatch,
  TaskStore,
  WatchableTaskStore,
} from "./task-store.ts";
import { TaskWatchers } from "./task-watchers.ts";

/** Options of {@link MemoryTaskStore}. */
export interface MemoryTaskStoreOptions {
  /** The largest record, in UTF-16 units of JSON text. @default 8 MiB */
  readonly maxRecordBytes?: number;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
  /** Where an error thrown by a watch listener goes. @default the global `reportError`, else the console */
  readonly onError?: ErrorListener;
}

interface Entry {
  readonly record: TaskRecord;
  readonly bornAtMs: number;
  /** An upper bound of its size: what a patch replaces is counted as if it stayed. */
  readonly maxBytes: number;
}

/** Keeps tasks in this process: for tests, for development, and for tasks that may die with their server. */
export class MemoryTaskStore implements TaskStore, WatchableTaskStore, LeasingTaskStore, ExclusiveTaskStore {
  readonly exclusive = true;
  readonly #entries = new Map<string, Entry>();
  readonly #leases = new LeaseDeadlines();
  readonly #watchers: TaskWatchers;
  readonly #maxRecordBytes: number;
  readonly #now: () => number;
  #closed = false;

  constructor(options: MemoryTaskStoreOptions = {}) {
    this.#maxRecordBytes = options.maxRecordBytes ?? 8 * 1024 * 1024;
    if (!Number.isSafeInteger(this.#maxRecordBytes) || this.#maxRecordBytes < 1) {
      throw new RangeError("maxRecordBytes must be a positive integer.");
    }
    this.#now = options.now ?? Date.now;
    this.#watchers = new TaskWatchers(options.onError);
  }

  /** Records held, expired ones that no sweep has deleted yet included. */
  get size(): number {
    return this.#entries.size;
  }

  async create(record: TaskRecord): Promise<void> {
    this.#assertOpen();
    if (this.#live(record.taskId) !== undefined) throw storeErrors.taskExists(record.taskId);
    const kept = Object.freeze(snapshot(withoutUndefined(record)) as TaskRecord);
    const maxBytes = this.#assertFits(record.taskId, jsonSize(kept));
    const bornAtMs = this.#now();
    this.#entries.set(record.taskId, { record: kept, bornAtMs, maxBytes });
    this.#leases.created(kept, bornAtMs);
    this.#watchers.notify(record.taskId);
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    this.#assertOpen();
    return this.#live(taskId)?.record;
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    this.#assertOpen();
    const entry = this.#live(taskId);
    if (entry === undefined) throw storeErrors.unknownTask(taskId);
    if (entry.record.version !== expectedVersion) {
      throw storeErrors.versionConflict(taskId, expectedVersion, entry.record.version);
    }
    const kept = snapshot(patch) as TaskPatch;
    const record = applyTaskPatch(entry.record, kept);
    const bound = entry.maxBytes + addedSize(kept);
    // Counted again only where the bound says too much: then it is exact once more.
    const maxBytes = bound > this.#maxRecordBytes ? this.#assertFits(taskId, jsonSize(record)) : bound;
    this.#replace(entry, record, kept, maxBytes);
    return record.version;
  }

  async sweep(): Promise<number> {
    this.#assertOpen();
    const nowMs = this.#now();
    let swept = 0;
    for (const [taskId, { record, bornAtMs }] of this.#entries) {
      if (!isExpired(bornAtMs, record.ttlMs, nowMs)) continue;
      this.#entries.delete(taskId);
      this.#leases.deleted(taskId);
      this.#watchers.notify(taskId);
      swept += 1;
    }
    return swept;
  }

  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    this.#assertOpen();
    assertClaim(owner, leaseMs, options);
    const claimed: TaskRecord[] = [];
    for (const taskId of this.#leases.lapsed(this.#now(), options.taskIds)) {
      const entry = this.#live(taskId);
      if (entry === undefined || !isClaimable(entry.record, options)) continue;
      const patch = { lease: newLease(owner, leaseMs) };
      const record = applyTaskPatch(entry.record, patch);
      // No limit of size here: a task that is too large to be claimed would never end.
      this.#replace(entry, record, patch, entry.maxBytes + addedSize(patch));
      claimed.push(record);
      if (claimed.length >= options.limit) break;
    }
    return claimed;
  }

  async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    this.#assertOpen();
    assertLeaseMs(leaseMs);
    const lost: string[] = [];
    for (const { taskId, token } of leases) {
      const record = this.#live(taskId)?.record;
      if (record !== undefined && holdsLease(record, token))
        this.#leases.renewed(taskId, leaseMs, this.#now());
      else lost.push(taskId);
    }
    return lost;
  }

  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    this.#assertOpen();
    return this.#watchers.add(taskId, onChange);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
    this.#entries.clear();
    this.#leases.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #replace({ bornAtMs }: Entry, record: TaskRecord, patch: TaskPatch, maxBytes: number): void {
    this.#entries.set(record.taskId, { record, bornAtMs, maxBytes });
    this.#leases.updated(record, patch, this.#now());
    this.#watchers.notify(record.taskId);
  }

  #live(taskId: string): Entry | undefined {
    const entry = this.#entries.get(taskId);
    return entry === undefined || isExpired(entry.bornAtMs, entry.record.ttlMs, this.#now())
      ? undefined
      : entry;
  }

  #assertOpen(): void {
    if (this.#closed) throw storeErrors.storeClosed();
  }

  #assertFits(taskId: string, bytes: number): number {
    if (bytes > this.#maxRecordBytes) throw storeErrors.recordTooLarge(taskId, bytes, this.#maxRecordBytes);
    return bytes;
  }
}

const unlimited = { maxDepth: 10_000, maxKeys: Infinity, maxBytes: Infinity };

/**
 * A frozen copy of the caller's object that shares what is frozen already. `undefined` fields stay, because
 * in a patch they delete.
 */
function snapshot(fields: object): object {
  const copy: Record<string, unknown> = {};
  for (const field of Object.keys(fields)) {
    const value: unknown = fields[field as never];
    const isWhole = value === undefined || typeof value === "string";
    setOwn(copy, field, isWhole ? value : normalizeJson(value, field, unlimited));
  }
  return copy;
}

/** A field that is present but `undefined` is a field that is absent. */
function withoutUndefined(record: TaskRecord): object {
  const fields = Object.entries(record);
  if (fields.every(([, value]) => value !== undefined)) return record;
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/** Units of JSON text that a patch adds at the most. */
function addedSize(patch: TaskPatch): number {
  let units = 0;
  for (const field of Object.keys(patch) as (keyof TaskPatch)[]) {
    const value: unknown = patch[field];
    // Quotation marks, colon and comma come on top.
    if (value !== undefined) units += field.length + 4 + jsonSize(value);
  }
  return units;
}

function jsonSize(value: unknown): number {
  return typeof value === "number" ? 16 : JSON.stringify(value).length;
}
