import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  applyTaskPatch,
  assertClaim,
  assertLeaseMs,
  holdsLease,
  isClaimable,
  isExpired,
  LeaseDeadlines,
  newLease,
  storeErrors,
  type ClaimOptions,
  type ExclusiveTaskStore,
  type HeldLease,
  type LeasingTaskStore,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
} from "@longjobs/core";

interface Entry {
  readonly record: TaskRecord;
  readonly bornAtMs: number;
}

export const maxRecordBytes = 256 * 1024;

/** A store as somebody else might write one: each task is a JSON file in a folder that one process uses. */
export class FolderTaskStore implements TaskStore, LeasingTaskStore, ExclusiveTaskStore {
  readonly exclusive = true;
  readonly #folder: string;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #leases = new LeaseDeadlines();
  #closed = false;

  constructor(folder: string, now: () => number = Date.now) {
    this.#folder = folder;
    this.#now = now;
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder).filter((each) => each.endsWith(".json"))) {
      const entry = JSON.parse(readFileSync(join(folder, name), "utf8")) as Entry;
      this.#entries.set(entry.record.taskId, entry);
      this.#leases.reopened(entry.record);
    }
  }

  async create(record: TaskRecord): Promise<void> {
    if (this.#live(record.taskId) !== undefined) throw storeErrors.taskExists(record.taskId);
    const kept = this.#write({ record, bornAtMs: this.#now() });
    this.#leases.created(kept, this.#now());
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    return structuredClone(this.#live(taskId)?.record);
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    const entry = this.#live(taskId);
    if (entry === undefined) throw storeErrors.unknownTask(taskId);
    const { version } = entry.record;
    if (version !== expectedVersion) throw storeErrors.versionConflict(taskId, expectedVersion, version);
    return this.#patch(entry, patch).version;
  }

  async sweep(): Promise<number> {
    this.#assertOpen();
    const expired = [...this.#entries.keys()].filter((taskId) => this.#live(taskId) === undefined);
    for (const taskId of expired) {
      rmSync(this.#path(taskId));
      this.#entries.delete(taskId);
      this.#leases.deleted(taskId);
    }
    return expired.length;
  }

  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    this.#assertOpen();
    assertClaim(owner, leaseMs, options);
    const claimed: TaskRecord[] = [];
    for (const taskId of this.#leases.lapsed(this.#now(), options.taskIds)) {
      const entry = this.#live(taskId);
      if (entry === undefined || !isClaimable(entry.record, options)) continue;
      claimed.push(structuredClone(this.#patch(entry, { lease: newLease(owner, leaseMs) })));
      if (claimed.length >= options.limit) break;
    }
    return claimed;
  }

  async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    this.#assertOpen();
    assertLeaseMs(leaseMs);
    return leases.flatMap(({ taskId, token }) => {
      const record = this.#live(taskId)?.record;
      if (record === undefined || !holdsLease(record, token)) return [taskId];
      this.#leases.renewed(taskId, leaseMs, this.#now());
      return [];
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #live(taskId: string): Entry | undefined {
    this.#assertOpen();
    const entry = this.#entries.get(taskId);
    const expired = entry !== undefined && isExpired(entry.bornAtMs, entry.record.ttlMs, this.#now());
    return expired ? undefined : entry;
  }

  #patch(entry: Entry, patch: TaskPatch): TaskRecord {
    const kept = this.#write({ ...entry, record: applyTaskPatch(entry.record, patch) });
    this.#leases.updated(kept, patch, this.#now());
    return kept;
  }

  /** Writes beside the file, then renames: a reader after a crash sees the old record or the new one. */
  #write(entry: Entry): TaskRecord {
    const { taskId } = entry.record;
    const json = JSON.stringify(entry);
    const bytes = Buffer.byteLength(json);
    if (bytes > maxRecordBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxRecordBytes);
    writeFileSync(`${this.#path(taskId)}.new`, json);
    renameSync(`${this.#path(taskId)}.new`, this.#path(taskId));
    const kept = JSON.parse(json) as Entry;
    this.#entries.set(taskId, kept);
    return kept.record;
  }

  #path(taskId: string): string {
    const name = createHash("sha256").update(taskId, "utf16le").digest("hex");
    return join(this.#folder, `${name}.json`);
  }

  #assertOpen(): void {
    if (this.#closed) throw storeErrors.storeClosed();
  }
}
