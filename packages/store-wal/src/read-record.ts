import { freezeParsedJson } from "@longjobs/core";
import { crc32 } from "node:zlib";
import { CachedTask } from "./cached-task.ts";
import { decodeHeader, decodeMeta, isWholeFrame, type BlobEntry } from "./decode-frame.ts";
import { encodeId } from "./encode-id.ts";
import { readFully } from "./file-layer.ts";
import { FLAG_OPEN, frameKinds } from "./frame-format.ts";
import { segmentKey, type BlobRef, type LogSegment } from "./log-segment.ts";
import type { SegmentFiles } from "./segment-files.ts";
import { encodeFields, fieldAt, parseRecord, type TaskField } from "./task-fields.ts";
import type { TaskEntry } from "./task-index.ts";
import { walErrors } from "./wal-errors.ts";

/** The bytes on disk are not what was written there: where, and in which segment. */
export class DamagedBytesError extends Error {
  override readonly name = "DamagedBytesError";
  readonly place: Pick<BlobRef, "segment" | "offset" | "bytes">;

  constructor(place: Pick<BlobRef, "segment" | "offset" | "bytes">) {
    super(`${place.segment.name} is damaged at ${place.offset}.`);
    this.place = place;
  }
}

/** The newest frame of a task as it lies on disk, checked. */
export interface StoredFrame {
  readonly isOpen: boolean;
  readonly small: Buffer;
  readonly blobs: readonly StoredBlob[];
}

/** A large field: where it is, and its bytes when they lie in the frame itself. */
export interface StoredBlob {
  readonly key: string;
  readonly ref: BlobRef;
  readonly inline: Buffer | undefined;
}

/** Reads tasks from the segments. */
export class RecordReader {
  readonly #files: SegmentFiles;
  readonly #segments: ReadonlyMap<number, LogSegment>;

  constructor(files: SegmentFiles, segments: ReadonlyMap<number, LogSegment>) {
    this.#files = files;
    this.#segments = segments;
  }

  /** The whole record. @throws DamagedBytesError, or `store_unavailable` when the disk does not answer. */
  readTask(taskId: string, entry: TaskEntry): Promise<CachedTask> {
    return this.#holding(entry, async () => {
      const frame = await this.#readFrame(entry);
      const large: [string, string][] = [];
      for (const { key, ref, inline } of frame.blobs)
        large.push([key, (inline ?? (await this.#readBytes(ref))).toString()]);
      const small = frame.small.toString();
      const record = freezeParsedJson(parseRecord(taskId, entry.version, small, large));
      let bytes = small.length;
      for (const [, text] of large) bytes += text.length;
      return CachedTask.ofRecord({ record, id: encodeId(taskId), bytes }, largeFields(frame));
    });
  }

  /** What an update needs: the small fields, and where the large ones are. */
  readFields(taskId: string, entry: TaskEntry): Promise<CachedTask> {
    return this.#holding(entry, async () => {
      const frame = await this.#readFrame(entry);
      const small = frame.small.toString();
      const fields = encodeFields(parseRecord(taskId, entry.version, small, []));
      const task = { record: undefined, id: encodeId(taskId), bytes: small.length };
      return CachedTask.withFields(task, [...fields, ...largeFields(frame)]);
    });
  }

  /**
   * The frame for a copy, with the bytes of every large field that lies in `from`, if that is given.
   *
   * @param known - The bytes of the frame, where somebody has just read them: mostly nothing else is read then.
   */
  readForCopy(
    entry: TaskEntry,
    from: LogSegment | undefined,
    known?: Buffer,
  ): StoredFrame | Promise<StoredFrame> {
    const frame = known === undefined ? undefined : this.#parseFrame(entry, known);
    if (frame?.blobs.length === 0) return frame;
    return this.#holding(entry, async () => {
      const { isOpen, small, blobs } = frame ?? (await this.#readFrame(entry));
      const moving: StoredBlob[] = [];
      for (const blob of blobs) {
        const moves = blob.ref.segment === from;
        moving.push({
          ...blob,
          inline: moves ? (blob.inline ?? (await this.#readBytes(blob.ref))) : undefined,
        });
      }
      return { isOpen, small, blobs: moving };
    });
  }

  /** The raw bytes of a place, damaged or not. */
  readRaw({ segment, offset, bytes }: Pick<BlobRef, "segment" | "offset" | "bytes">): Promise<Buffer> {
    this.#files.hold(segment);
    return this.#read(segment, offset, bytes).finally(() => this.#files.release(segment));
  }

  /** Holds every segment the entry needs. The entry must come from the index in the same turn. */
  async #holding<T>(entry: TaskEntry, read: () => Promise<T>): Promise<T> {
    const held = [entry.segment, ...(entry.blobs ?? []).map(({ segment }) => segment)];
    for (const segment of held) this.#files.hold(segment);
    try {
      return await read();
    } finally {
      for (const segment of held) this.#files.release(segment);
    }
  }

  async #readFrame(entry: TaskEntry): Promise<StoredFrame> {
    return this.#parseFrame(entry, await this.#read(entry.segment, entry.offset, entry.bytes));
  }

  #parseFrame(entry: TaskEntry, source: Buffer): StoredFrame {
    const { segment, bytes } = entry;
    const header = decodeHeader(source, 0, segment.salt);
    if (header?.kind !== frameKinds.image || header.sequence !== entry.sequence)
      throw new DamagedBytesError(entry);
    if (source.length !== bytes || !isWholeFrame(source, 0, header, segment.salt))
      throw new DamagedBytesError(entry);
    const meta = decodeMeta(source, 0, header);
    if (meta === undefined) throw new DamagedBytesError(entry);
    return {
      isOpen: (header.flags & FLAG_OPEN) !== 0,
      small: source.subarray(meta.smallAt, meta.smallAt + meta.smallBytes),
      blobs: meta.blobs.map((blob) => this.#locate(entry, blob, source)),
    };
  }

  #locate(entry: TaskEntry, blob: BlobEntry, source: Buffer): StoredBlob {
    const { key, offset, bytes, checksum } = blob;
    const segment = this.#segments.get(segmentKey(blob));
    if (segment === undefined) throw new DamagedBytesError(entry);
    const isInline = segment === entry.segment && offset >= entry.offset;
    const at = offset - entry.offset;
    return {
      key,
      ref: { segment, offset, bytes, checksum },
      inline: isInline ? source.subarray(at, at + bytes) : undefined,
    };
  }

  async #readBytes(ref: BlobRef): Promise<Buffer> {
    const bytes = await this.#read(ref.segment, ref.offset, ref.bytes);
    if (crc32(bytes, ref.segment.salt) !== ref.checksum) throw new DamagedBytesError(ref);
    return bytes;
  }

  async #read(segment: LogSegment, offset: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    try {
      const file = await this.#files.file(segment);
      return bytes.subarray(0, await readFully(file, bytes, length, offset));
    } catch (error) {
      throw walErrors.unavailable(`read ${segment.name}`, error);
    }
  }
}

function largeFields({ blobs }: StoredFrame): TaskField[] {
  return blobs.map(({ key, ref }) => fieldAt(key, ref));
}
