import { hashId, hashKey, type IdHash } from "./hash-id.ts";
import type { BlobRef, Damage, LogSegment } from "./log-segment.ts";

/** Where the newest frame of a task is, and what can be answered without reading it. Never changed, only replaced. */
export interface TaskEntry {
  readonly segment: LogSegment;
  readonly offset: number;
  readonly bytes: number;
  readonly sequence: number;
  readonly version: number;
  readonly bornAtMs: number;
  readonly ttlMs: number | null;
  /** Large fields that lie outside this frame; `null` when there are none. */
  readonly blobs: readonly BlobRef[] | null;
  /** Key of the oldest segment that may still hold a frame of this task. */
  readonly sinceSegment: number;
  /** Why the task cannot be served. */
  readonly damage: Damage | null;
}

/**
 * The newest entry of every task, and how many bytes of each segment they need. A damaged frame whose id is
 * unreadable is kept by the hash of the id.
 */
export class TaskIndex {
  readonly #entries: Map<string, TaskEntry>;
  readonly #unnamed = new Map<string, TaskEntry>();

  /** Takes the map over: a second one of a large log would double the memory of an opening. */
  constructor(entries: Map<string, TaskEntry> = new Map()) {
    this.#entries = entries;
    for (const entry of entries.values()) hold(entry);
  }

  get size(): number {
    return this.#entries.size + this.#unnamed.size;
  }

  get(taskId: string): TaskEntry | undefined {
    const entry = this.#entries.get(taskId);
    if (entry !== undefined || this.#unnamed.size === 0) return entry;
    return this.#unnamed.get(hashKey(hashId(taskId)));
  }

  set(taskId: string, entry: TaskEntry): void {
    const before = this.#entries.get(taskId);
    if (before === undefined) this.#forgetUnnamed(taskId);
    else release(before);
    hold(entry);
    this.#entries.set(taskId, entry);
  }

  setUnnamed(idHash: IdHash, entry: TaskEntry): void {
    const key = hashKey(idHash);
    const before = this.#unnamed.get(key);
    if (before !== undefined) release(before);
    hold(entry);
    this.#unnamed.set(key, entry);
  }

  delete(taskId: string): void {
    const entry = this.#entries.get(taskId);
    if (entry !== undefined) release(entry);
    this.#entries.delete(taskId);
    this.#forgetUnnamed(taskId);
  }

  getUnnamed(idHash: IdHash): TaskEntry | undefined {
    return this.#unnamed.get(hashKey(idHash));
  }

  deleteUnnamed(idHash: IdHash): void {
    const key = hashKey(idHash);
    const entry = this.#unnamed.get(key);
    if (entry !== undefined) release(entry);
    this.#unnamed.delete(key);
  }

  /** Tasks by id. The iterator may be kept across changes. */
  named(): MapIterator<[string, TaskEntry]> {
    return this.#entries.entries();
  }

  unnamed(): [string, TaskEntry][] {
    return [...this.#unnamed];
  }

  #forgetUnnamed(taskId: string): void {
    if (this.#unnamed.size > 0) this.deleteUnnamed(hashId(taskId));
  }
}

function hold(entry: TaskEntry): void {
  count(entry, 1);
}

function release(entry: TaskEntry): void {
  count(entry, -1);
}

function count({ segment, bytes, blobs }: TaskEntry, sign: 1 | -1): void {
  segment.liveBytes += sign * bytes;
  if (blobs !== null) for (const blob of blobs) blob.segment.liveBytes += sign * blob.bytes;
}

/** Whether the newest state of a task has a part in a segment. */
export function needsSegment({ segment, blobs }: TaskEntry, wanted: LogSegment): boolean {
  return segment === wanted || (blobs?.some((blob) => blob.segment === wanted) ?? false);
}
