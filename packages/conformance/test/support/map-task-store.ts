// #region store
import { applyTaskPatch, isExpired, storeErrors } from "@longjobs/core";
import type { TaskPatch, TaskRecord, TaskStore } from "@longjobs/core";

interface Row {
  readonly json: string;
  readonly bornAtMs: number;
}

export interface MapTaskStoreOptions {
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
  /** The largest record. @default 8 MiB */
  readonly maxRecordBytes?: number;
}

/** A complete store in one map of JSON text. Replace the map by what you have. */
export class MapTaskStore implements TaskStore {
  readonly #rows = new Map<string, Row>();
  readonly #now: () => number;
  readonly #maxRecordBytes: number;
  #closed = false;

  constructor({ now = Date.now, maxRecordBytes = 8 * 1024 * 1024 }: MapTaskStoreOptions = {}) {
    this.#now = now;
    this.#maxRecordBytes = maxRecordBytes;
  }

  async create(record: TaskRecord): Promise<void> {
    if (this.#live(record.taskId) !== undefined) throw storeErrors.taskExists(record.taskId);
    // The age counts from this stamp of the store's own clock, not from record.createdAt (C16).
    this.#write(record, this.#now());
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    const row = this.#live(taskId);
    return row && decode(row);
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    const row = this.#live(taskId);
    if (row === undefined) throw storeErrors.unknownTask(taskId);
    const record = decode(row);
    if (record.version !== expectedVersion) {
      throw storeErrors.versionConflict(taskId, expectedVersion, record.version);
    }
    // Compare and write are one step here, because nothing is awaited in between (C13).
    const next = applyTaskPatch(record, patch);
    this.#write(next, row.bornAtMs);
    return next.version;
  }

  async sweep(): Promise<number> {
    this.#assertOpen();
    const expired = [...this.#rows.keys()].filter((taskId) => this.#live(taskId) === undefined);
    for (const taskId of expired) this.#rows.delete(taskId);
    return expired.length;
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #live(taskId: string): Row | undefined {
    this.#assertOpen();
    const row = this.#rows.get(taskId);
    return row === undefined || isExpired(row.bornAtMs, decode(row).ttlMs, this.#now()) ? undefined : row;
  }

  #write(record: TaskRecord, bornAtMs: number): void {
    const json = JSON.stringify(record);
    const bytes = new TextEncoder().encode(json).length;
    if (bytes > this.#maxRecordBytes)
      throw storeErrors.recordTooLarge(record.taskId, bytes, this.#maxRecordBytes);
    this.#rows.set(record.taskId, { json, bornAtMs });
  }

  #assertOpen(): void {
    if (this.#closed) throw storeErrors.storeClosed();
  }
}

function decode({ json }: Row): TaskRecord {
  return JSON.parse(json) as TaskRecord;
}
// #endregion
