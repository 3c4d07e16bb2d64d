import { setImmediate as nextTurn } from "node:timers/promises";
import {
  applyTaskPatch,
  assertClaim,
  assertLeaseMs,
  isClaimable,
  isExpired,
  isLongJobsError,
  isTerminal,
  reportBackgroundError,
  storeErrors,
  TaskWatchers,
  type ClaimOptions,
  type ExclusiveTaskStore,
  type HeldLease,
  type Lease,
  type LeasingTaskStore,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
  type WatchableTaskStore,
} from "@longjobs/core";
import { CachedTask } from "./cached-task.ts";
import { draftImage, type FrameDraft } from "./draft-frame.ts";
import { encodeId } from "./encode-id.ts";
import type { LogEngine } from "./log-engine.ts";
import type { Damage } from "./log-segment.ts";
import { segmentKey } from "./log-segment.ts";
import { OperationGate } from "./operation-gate.ts";
import type { ResolvedOptions, WalTaskStoreOptions } from "./options.ts";
import { openLog } from "./open-log.ts";
import { entryOfFrame, settleFields } from "./place-frame.ts";
import { DamagedBytesError } from "./read-record.ts";
import {
  assertFits,
  encodeFields,
  patchFields,
  snapshotPatch,
  snapshotRecord,
  type TaskField,
} from "./task-fields.ts";
import type { TaskEntry } from "./task-index.ts";
import { walErrors } from "./wal-errors.ts";
import { WalLeases } from "./wal-leases.ts";
import type { WalStats } from "./wal-stats.ts";

/** Entries looked at, and tasks deleted, between two turns of the event loop. */
const SWEEP_SLICE = 2_000;
const SWEEP_REMOVALS = 256;

/**
 * Keeps tasks on one local disk, for one process: a write-ahead log with group commit. Open it with
 * {@link WalTaskStore.open}.
 *
 * A task is what the index says: its entry changes when a frame is durable, and then, in this order, the
 * cache, the watchers and the caller learn of it. A writer has the lane of its task from before it looks at
 * the version until then.
 */
export class WalTaskStore implements TaskStore, WatchableTaskStore, LeasingTaskStore, ExclusiveTaskStore {
  readonly exclusive = true;
  readonly #engine: LogEngine;
  readonly #options: ResolvedOptions;
  readonly #watchers: TaskWatchers;
  readonly #gate = new OperationGate();
  readonly #loads = new Map<TaskEntry, Promise<CachedTask>>();
  readonly #leases: WalLeases;
  #closing: Promise<void> | undefined;

  /** Its directory, as it was given: nothing that clients can reach may hold it. */
  get dir(): string {
    return this.#options.dir;
  }

  private constructor(engine: LogEngine, options: ResolvedOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#watchers = new TaskWatchers(options.onError);
    this.#leases = new WalLeases({
      now: options.now,
      get: (taskId) => this.#readForLease(taskId),
      claim: (taskId, lease, wanted) => this.#claimTask(taskId, lease, wanted),
    });
  }

  /**
   * Opens the log in a directory and makes this process its owner until {@link close}.
   *
   * Rejects with `store_locked` while another process, or this one, has it open, with `schema_too_new` for a
   * log of a later version, and with TypeError or RangeError for an option out of bounds.
   */
  static async open(options: WalTaskStoreOptions): Promise<WalTaskStore> {
    const { engine, resolved, openTasks } = await openLog(options);
    const store = new WalTaskStore(engine, resolved);
    for (const taskId of openTasks) store.#leases.reopened(taskId);
    engine.start({
      removeExpired: (taskId, entry) => store.#writeTombstone(taskId, entry),
      sweepExpired: () => store.#sweepInBackground(),
    });
    return store;
  }

  async create(record: TaskRecord): Promise<void> {
    this.#assertOpen();
    const { maxRecordBytes, now } = this.#options;
    const kept = snapshotRecord(record, maxRecordBytes);
    const { taskId, version, ttlMs } = kept;
    const id = encodeId(taskId);
    const fields = encodeFields(kept);
    const bytes = assertFits(id, version, fields, maxRecordBytes);
    const ahead = this.#beginWrite(taskId);
    try {
      if (ahead !== undefined) await ahead;
      const found = this.#engine.index.get(taskId);
      const since = found?.sinceSegment;
      if (this.#isLive(found))
        throw found.damage === null ? storeErrors.taskExists(taskId) : corrupt(taskId, found.damage);
      const draft = draftImage({ id, version, bornAtMs: now(), ttlMs: lifeOf(ttlMs) }, fields);
      await this.#engine.queue.append({
        draft,
        rank: "ordinary",
        onDurable: (placed) => {
          settleFields(draft, placed);
          const entry = entryOfFrame(draft, placed, since ?? segmentKey(placed.segment));
          this.#show(taskId, entry, cacheable(draft, { record: kept, id, bytes }, fields));
          this.#leases.created(kept);
        },
      });
    } finally {
      this.#endWrite(taskId);
    }
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    this.#assertOpen();
    const entry = this.#engine.index.get(taskId);
    if (!this.#isLive(entry)) return undefined;
    if (entry.damage !== null) throw corrupt(taskId, entry.damage);
    const cached = this.#engine.cache.get(taskId)?.record;
    if (cached !== undefined) return cached;
    return (await this.#gate.run(() => this.#load(taskId, entry))).record;
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    this.#assertOpen();
    const { maxRecordBytes } = this.#options;
    const kept = snapshotPatch(patch, maxRecordBytes);
    const ahead = this.#beginWrite(taskId);
    try {
      if (ahead !== undefined) await ahead;
      const entry = this.#engine.index.get(taskId);
      if (!this.#isLive(entry)) throw storeErrors.unknownTask(taskId);
      if (entry.damage !== null) throw corrupt(taskId, entry.damage);
      if (entry.version !== expectedVersion) {
        throw storeErrors.versionConflict(taskId, expectedVersion, entry.version);
      }
      const current = this.#engine.cache.get(taskId) ?? (await this.#loadFields(taskId, entry));
      await this.#append(taskId, entry, current, kept, maxRecordBytes);
      return expectedVersion + 1;
    } finally {
      this.#endWrite(taskId);
    }
  }

  /** @see LeasingTaskStore. A lease of an earlier opening has lapsed: whoever held it has gone (C32). */
  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    this.#assertOpen();
    assertClaim(owner, leaseMs, options);
    return this.#gate.run(() => this.#leases.claim(owner, leaseMs, options));
  }

  async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    this.#assertOpen();
    assertLeaseMs(leaseMs);
    return this.#gate.run(() => this.#leases.renew(leases, leaseMs));
  }

  async sweep(): Promise<number> {
    this.#assertOpen();
    return this.#gate.run(() => this.#sweepExpired());
  }

  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    this.#assertOpen();
    return this.#watchers.add(taskId, onChange);
  }

  /**
   * How full the log is, and what has been written since it was opened. Cheap enough for every scrape of a
   * monitor: it reads nothing and goes through no task.
   *
   * @throws LongJobsError `store_closed` after {@link close}; `store_locked` when another process has taken the
   * directory over.
   */
  stats(): WalStats {
    this.#assertOpen();
    return this.#engine.stats();
  }

  /** Finishes pending writes and releases every file. Never rejects: failures go to `onError`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#gate.whenIdle();
    await this.#engine.close();
    this.#watchers.clear();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw storeErrors.storeClosed();
    if (this.#engine.lost !== undefined) throw this.#engine.lost;
  }

  #isLive(entry: TaskEntry | undefined): entry is TaskEntry {
    return entry !== undefined && !isExpired(entry.bornAtMs, entry.ttlMs, this.#options.now());
  }

  /**
   * One write at a time per task: whoever waits for the promise looks at the version only when its turn has come.
   * `undefined` when it has come already. Call {@link #endWrite} however the write ends.
   */
  #beginWrite(taskId: string): Promise<void> | undefined {
    this.#gate.enter();
    return this.#engine.lanes.enter(taskId);
  }

  #endWrite(taskId: string): void {
    this.#engine.lanes.leave(taskId);
    this.#gate.leave();
  }

  /** Writes the task after a patch. The caller has its lane, and has checked the version. */
  #append(
    taskId: string,
    entry: TaskEntry,
    current: CachedTask,
    patch: TaskPatch,
    maxRecordBytes: number,
  ): Promise<void> {
    const { id } = current;
    const { bornAtMs, sinceSegment } = entry;
    const version = entry.version + 1;
    const fields = patchFields(current.fields, patch);
    const bytes = assertFits(id, version, fields, maxRecordBytes);
    const record = current.record && applyTaskPatch(current.record, patch);
    const ttlMs = Object.hasOwn(patch, "ttlMs") ? lifeOf(patch.ttlMs) : entry.ttlMs;
    const draft = draftImage({ id, version, bornAtMs, ttlMs }, fields);
    return this.#engine.queue.append({
      draft,
      rank: patch.status !== undefined && isTerminal(patch.status) ? "terminal" : "ordinary",
      onDurable: (placed) => {
        settleFields(draft, placed);
        const after = cacheable(draft, { record, id, bytes }, fields);
        this.#show(taskId, entryOfFrame(draft, placed, sinceSegment), after);
        this.#leases.updated(taskId, draft.isOpen, patch);
      },
    });
  }

  /** Gives a task a lease if it may be claimed at the moment its lane is free; resolves to it as it is then. */
  async #claimTask(taskId: string, lease: Lease, options: ClaimOptions): Promise<TaskRecord | undefined> {
    const ahead = this.#beginWrite(taskId);
    try {
      if (ahead !== undefined) await ahead;
      const entry = this.#engine.index.get(taskId);
      if (!this.#isLive(entry) || entry.damage !== null || !this.#leases.hasLapsed(taskId)) return undefined;
      const cached = this.#engine.cache.get(taskId);
      const current = cached?.record === undefined ? await this.#load(taskId, entry) : cached;
      const { record } = current;
      if (record === undefined || !isClaimable(record, options)) return undefined;
      // No limit of size here: a task that is too large to be claimed would never end.
      await this.#append(taskId, entry, current, { lease }, Infinity);
      return applyTaskPatch(record, { lease });
    } finally {
      this.#endWrite(taskId);
    }
  }

  #show(taskId: string, entry: TaskEntry, cached: CachedTask | undefined): void {
    this.#engine.index.set(taskId, entry);
    if (cached === undefined) this.#engine.cache.delete(taskId);
    else this.#engine.cache.set(taskId, cached);
    this.#watchers.notify(taskId);
  }

  /** Parallel readers of one task share one reading. */
  #load(taskId: string, entry: TaskEntry): Promise<CachedTask> {
    const known = this.#loads.get(entry);
    if (known !== undefined) return known;
    const loading = this.#loadTask(taskId, entry).finally(() => this.#loads.delete(entry));
    this.#loads.set(entry, loading);
    return loading;
  }

  async #loadTask(taskId: string, entry: TaskEntry): Promise<CachedTask> {
    const task = await this.#reading(taskId, entry, this.#engine.reader.readTask(taskId, entry));
    // The task may have changed meanwhile: what was read is then good for this caller only.
    if (this.#engine.index.get(taskId) === entry) this.#engine.cache.set(taskId, task);
    return task;
  }

  /** For the write that follows, which shows what the task is then. */
  #loadFields(taskId: string, entry: TaskEntry): Promise<CachedTask> {
    return this.#reading(taskId, entry, this.#engine.reader.readFields(taskId, entry));
  }

  async #reading(taskId: string, entry: TaskEntry, reading: Promise<CachedTask>): Promise<CachedTask> {
    try {
      return await reading;
    } catch (error) {
      if (!(error instanceof DamagedBytesError) && !isLongJobsError(error, "record_corrupt")) throw error;
      throw corrupt(taskId, this.#engine.markDamaged(taskId, entry, error));
    }
  }

  /** A task that cannot be read is held by nobody as far as a renewal can tell. */
  async #readForLease(taskId: string): Promise<TaskRecord | undefined> {
    const entry = this.#engine.index.get(taskId);
    if (!this.#isLive(entry) || entry.damage !== null) return undefined;
    return this.#engine.cache.get(taskId)?.record ?? (await this.#load(taskId, entry)).record;
  }

  async #sweepExpired(): Promise<number> {
    let swept = 0;
    let seen = 0;
    let removals: Promise<number>[] = [];
    const expired = [...this.#engine.index.unnamed()].filter(([, entry]) => !this.#isLive(entry));
    for (const [, { damage }] of expired) {
      if (damage?.idHash !== undefined) removals.push(this.#engine.removeUnnamed(damage.idHash));
    }
    for (const [taskId, entry] of this.#engine.index.named()) {
      if (!this.#isLive(entry)) removals.push(this.#removeIfExpired(taskId));
      seen += 1;
      if (seen % SWEEP_SLICE > 0 && removals.length < SWEEP_REMOVALS) continue;
      for (const count of await Promise.all(removals)) swept += count;
      removals = [];
      await nextTurn();
    }
    for (const count of await Promise.all(removals)) swept += count;
    return swept;
  }

  async #removeIfExpired(taskId: string): Promise<number> {
    const ahead = this.#beginWrite(taskId);
    try {
      if (ahead !== undefined) await ahead;
      const entry = this.#engine.index.get(taskId);
      if (entry === undefined || this.#isLive(entry)) return 0;
      await this.#writeTombstone(taskId, entry);
      return 1;
    } finally {
      this.#endWrite(taskId);
    }
  }

  async #writeTombstone(taskId: string, entry: TaskEntry): Promise<void> {
    await this.#engine.appendTombstone(taskId, entry, () => {
      this.#engine.index.delete(taskId);
      this.#engine.cache.delete(taskId);
      this.#leases.deleted(taskId);
      this.#watchers.notify(taskId);
    });
  }

  async #sweepInBackground(): Promise<void> {
    if (this.#closing !== undefined) return;
    try {
      await this.#gate.run(() => this.#sweepExpired());
    } catch (error) {
      reportBackgroundError(error, this.#options.onError);
    }
  }
}

/** A record without a usable life never expires, as `isExpired` has it for `null`. */
function lifeOf(ttlMs: number | null | undefined): number | null {
  return typeof ttlMs === "number" ? ttlMs : null;
}

/**
 * What is worth its memory: a finished task is hardly ever written again, so that only its record is kept, if somebody
 * has read it.
 */
function cacheable(
  { isOpen }: FrameDraft,
  task: Pick<CachedTask, "record" | "id" | "bytes">,
  fields: readonly TaskField[],
): CachedTask | undefined {
  const { record } = task;
  if (isOpen) return CachedTask.withFields(task, fields);
  return record && CachedTask.ofRecord({ ...task, record }, fields);
}

function corrupt(taskId: string, { segment, offset }: Damage): Error {
  return walErrors.corrupt(`Task ${taskId}`, `${segment.name} at ${offset}`, undefined);
}
