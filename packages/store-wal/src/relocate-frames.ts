import { isExpired } from "@longjobs/core";
import type { AppendQueue } from "./append-queue.ts";
import { draftFrame, type DraftBlob, type FrameDraft } from "./draft-frame.ts";
import { encodeId } from "./encode-id.ts";
import { frameKinds, type FrameHeader } from "./frame-format.ts";
import type { Damage, LogSegment } from "./log-segment.ts";
import type { PlacedFrame } from "./log-writer.ts";
import { entryOfFrame } from "./place-frame.ts";
import type { Quarantine } from "./quarantine.ts";
import { DamagedBytesError, type RecordReader, type StoredFrame } from "./read-record.ts";
import type { RecordCache } from "./record-cache.ts";
import { needsSegment, type TaskEntry, type TaskIndex } from "./task-index.ts";
import type { TaskLanes } from "./task-lanes.ts";
import { draftTombstone, type TombstoneRange } from "./tombstone.ts";

export interface RelocateParts {
  readonly index: TaskIndex;
  readonly cache: RecordCache;
  readonly lanes: TaskLanes;
  readonly queue: AppendQueue;
  readonly reader: RecordReader;
  readonly quarantine: Quarantine;
  readonly now: () => number;
  /** Deletes an expired task whose lane the caller has. */
  removeExpired(taskId: string, entry: TaskEntry): Promise<void>;
  /** Marks a task whose bytes turned out to be damaged. */
  markDamaged(taskId: string, entry: TaskEntry, error: DamagedBytesError): void;
}

/** A frame that a scan came across while it was the newest of its task. */
export interface ScannedCopy {
  readonly entry: TaskEntry;
  readonly bytes: Buffer;
}

interface CopyOptions {
  /** The segment whose large fields move; `undefined` when all stay where they are. */
  readonly from: LogSegment | undefined;
  /** `undefined` for a frame that is to be the newest. */
  readonly sequence: number | undefined;
  readonly known?: Buffer | undefined;
}

/**
 * Appends what is still needed of a segment to the end of the log. Each copy takes the lane of its task, so
 * that no write of it is in flight meanwhile.
 */
export class RelocateFrames {
  readonly #parts: RelocateParts;

  constructor(parts: RelocateParts) {
    this.#parts = parts;
  }

  /** Moves what a task has in a segment; `scanned` is its newest frame as it was just read, if it was. */
  async task(taskId: string, from: LogSegment, scanned?: ScannedCopy): Promise<void> {
    const { index, now, lanes } = this.#parts;
    const ahead = lanes.enter(taskId);
    try {
      if (ahead !== undefined) await ahead;
      const entry = index.get(taskId);
      if (entry === undefined || !needsSegment(entry, from)) return;
      if (isExpired(entry.bornAtMs, entry.ttlMs, now())) {
        await this.#parts.removeExpired(taskId, entry);
        return;
      }
      // The task may have been written since: then its frame is another one.
      const known = scanned?.entry === entry ? scanned.bytes : undefined;
      if (entry.damage === null) await this.#copy(taskId, entry, { from, sequence: entry.sequence, known });
      const damaged = index.get(taskId);
      if (damaged?.damage) await this.#mark(taskId, damaged, damaged.damage);
    } finally {
      lanes.leave(taskId);
    }
  }

  /** For an opening: writes the present state of a task once more, as its newest frame. A damaged one has none to write. */
  renew(taskId: string): Promise<void> {
    return this.#inLane(taskId, async () => {
      const entry = this.#parts.index.get(taskId);
      if (entry === undefined || entry.damage !== null) return;
      await this.#copy(taskId, entry, { from: undefined, sequence: undefined });
    });
  }

  /** Keeps the deletion of a task. */
  tombstone(taskId: string, header: FrameHeader, range: TombstoneRange): Promise<void> {
    return this.#inLane(taskId, async () => {
      const { idHash, bornAtMs, ttlMs, sequence } = header;
      const id = { ...encodeId(taskId), hash: idHash };
      const draft = draftTombstone({ id, bornAtMs, ttlMs }, range, { copyOf: sequence });
      await this.#append(draft, () => {});
    });
  }

  /** Appends a copy; a task whose bytes turn out to be damaged is marked in the index instead. */
  async #copy(taskId: string, entry: TaskEntry, { from, sequence, known }: CopyOptions): Promise<void> {
    const { index, reader } = this.#parts;
    let stored: StoredFrame;
    try {
      const reading = reader.readForCopy(entry, from, known);
      stored = reading instanceof Promise ? await reading : reading;
    } catch (error) {
      if (!(error instanceof DamagedBytesError)) throw error;
      this.#parts.markDamaged(taskId, entry, error);
      return;
    }
    const draft = draftCopy(taskId, entry, stored, sequence);
    await this.#append(draft, (frame) => {
      index.set(taskId, entryOfFrame(draft, frame, entry.sinceSegment));
      this.#moveFields(taskId, draft, frame);
    });
  }

  async #mark(taskId: string, entry: TaskEntry, damage: Damage): Promise<void> {
    const { index, quarantine } = this.#parts;
    if (!damage.isMarker) await quarantine.keep(damage);
    const { version, bornAtMs, ttlMs } = entry;
    const id = encodeId(taskId);
    const draft = draftFrame({ kind: frameKinds.marker, id, version, bornAtMs, ttlMs, small: "{}" });
    await this.#append(draft, (frame) => {
      index.set(taskId, entryOfFrame(draft, frame, entry.sinceSegment, markerDamage(damage, frame)));
    });
  }

  #append(draft: FrameDraft, onDurable: (placed: PlacedFrame) => void): Promise<void> {
    return this.#parts.queue.append({ draft, rank: "housekeeping", onDurable });
  }

  /** A task in memory refers to its large fields by place: the next update would refer to the old one. */
  #moveFields(taskId: string, draft: FrameDraft, placed: PlacedFrame): void {
    if (draft.blobs.length === 0) return;
    const cached = this.#parts.cache.get(taskId);
    for (const [index, { key }] of draft.blobs.entries()) {
      const ref = placed.inline[index];
      if (ref !== undefined) cached?.moved(key, ref);
    }
  }

  async #inLane<T>(taskId: string, work: () => Promise<T>): Promise<T> {
    const { lanes } = this.#parts;
    const ahead = lanes.enter(taskId);
    try {
      if (ahead !== undefined) await ahead;
      return await work();
    } finally {
      lanes.leave(taskId);
    }
  }
}

function draftCopy(
  taskId: string,
  entry: TaskEntry,
  stored: StoredFrame,
  copyOf: number | undefined,
): FrameDraft {
  const { version, bornAtMs, ttlMs } = entry;
  const blobs = stored.blobs.map(({ key, ref, inline }): DraftBlob => ({
    key,
    ref: inline === undefined ? ref : undefined,
    content: inline,
    bytes: ref.bytes,
    field: undefined,
  }));
  return draftFrame({
    kind: frameKinds.image,
    id: encodeId(taskId),
    version,
    bornAtMs,
    ttlMs,
    small: stored.small,
    blobs,
    copyOf,
    isSettling: copyOf === undefined,
    isOpen: stored.isOpen,
  });
}

function markerDamage(damage: Damage, { segment, offset, bytes, sequence }: PlacedFrame): Damage {
  return { ...damage, segment, offset, bytes, sequence, isMarker: true };
}
