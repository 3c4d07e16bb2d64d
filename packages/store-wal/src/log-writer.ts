import { join } from "node:path";
import type { FrameDraft } from "./draft-frame.ts";
import { encodeFrame, type FrameName } from "./encode-frame.ts";
import { flushDirectory, ShortWriteError, writeFully, type FileLayer, type OpenFile } from "./file-layer.ts";
import { frameKinds, HEADER_BYTES, NAME_BYTES, NAMING_DISTANCE, TRAILER_BYTES } from "./frame-format.ts";
import { noHash, type IdHash } from "./hash-id.ts";
import { LogSegment, MAX_NUMBER, segmentKey, type BlobRef } from "./log-segment.ts";
import type { ReserveFile } from "./reserve-file.ts";
import type { SegmentFiles } from "./segment-files.ts";
import { encodeSegmentHeader, FRAMES_START, segmentName, type SegmentHeader } from "./segment-header.ts";

/** Where a frame came to lie. */
export interface PlacedFrame {
  readonly segment: LogSegment;
  readonly offset: number;
  readonly bytes: number;
  readonly sequence: number;
  /** By the order of the draft's blobs; `undefined` for those that lie elsewhere. */
  readonly inline: readonly (BlobRef | undefined)[];
}

export interface LogWriterParts {
  readonly files: FileLayer;
  readonly dir: string;
  readonly fsync: boolean;
  readonly segmentBytes: number;
  readonly randomUint32: () => number;
  readonly epoch: number;
  readonly nextSequence: number;
  /** The segment an earlier opening wrote last. */
  readonly last: LogSegment | undefined;
  readonly segments: Map<number, LogSegment>;
  readonly open: SegmentFiles;
  readonly reserve: ReserveFile | undefined;
  /** Whether another process owns the directory by now. */
  isTakenOver(): boolean;
}

/** A batch that did not become durable. */
export class AppendFailure extends Error {
  override readonly name = "AppendFailure";
  /** True when the write failed as a whole: nothing of the batch is in the file. */
  readonly isAbsent: boolean;

  constructor(cause: unknown, isAbsent: boolean) {
    super("A batch could not be written.", { cause });
    this.isAbsent = isAbsent;
  }
}

/** The count of names is 16 bits long; after one large frame there are some thirty. */
const MAX_NAMES = 1_000;

const noNames: readonly FrameName[] = [];

/** No frame is smaller than its ends. */
const LEAST_FRAME_BYTES: number = HEADER_BYTES + TRAILER_BYTES;

/** The lock was taken over: nothing more may be acknowledged. */
export class TakenOverError extends Error {
  override readonly name = "TakenOverError";
}

/**
 * Writes batches of frames, one at a time. A segment is open from its first to its last good batch; a failed
 * write or flush ends it for ever, and the next segment records where it ended.
 */
export class LogWriter {
  readonly #parts: LogWriterParts;
  #active: LogSegment | undefined;
  #file: OpenFile | undefined;
  #last: LogSegment | undefined;
  #nextNumber = 1;
  #nextSequence: number;
  #durableSequence: number;
  #previousHash: IdHash = noHash;
  /** Frames of the active segment that no later one has named yet, in their order. */
  #unnamed: (FrameName & { readonly end: number })[] = [];
  #isOnReserve = false;
  #buffer: Buffer = Buffer.allocUnsafe(64 * 1024);

  constructor(parts: LogWriterParts) {
    this.#parts = parts;
    this.#nextSequence = parts.nextSequence;
    this.#durableSequence = parts.nextSequence - 1;
    this.#last = parts.last;
  }

  /** True while the log runs on the reserve, because the disk is full. */
  get isOnReserve(): boolean {
    return this.#isOnReserve;
  }

  get active(): LogSegment | undefined {
    return this.#active;
  }

  /** The segment written last, by this opening or an earlier one. */
  get last(): LogSegment | undefined {
    return this.#last;
  }

  get durableSequence(): number {
    return this.#durableSequence;
  }

  /** Whether the active segment takes so many bytes. */
  hasRoom(bytes: number): boolean {
    if (this.#active === undefined) return false;
    const after = this.#active.validBytes + bytes;
    if (this.#isOnReserve) {
      // No byte more than the reserve has: what waits to be named counts, and the frames of the batch themselves.
      const names = (this.#unnamed.length + bytes / LEAST_FRAME_BYTES) * NAME_BYTES;
      return after + names <= (this.#parts.reserve?.bytes ?? 0);
    }
    return after <= FRAMES_START + this.#parts.segmentBytes || this.#active.validBytes === FRAMES_START;
  }

  /** On the reserve, half of the space is not for housekeeping. */
  hasRoomForHousekeeping(bytes: number): boolean {
    return this.hasRoom(this.#isOnReserve ? bytes + (this.#parts.reserve?.bytes ?? 0) / 2 : bytes);
  }

  /** Goes on in a new file. It and its name are durable when this resolves, and so is the end of the last one. */
  async beginSegment(): Promise<void> {
    const { files, dir, fsync } = this.#parts;
    this.endSegment();
    const header = this.#nextHeader();
    const path = join(dir, segmentName(header));
    const file = await files.open(path, "wx+");
    try {
      await writeFully(file, encodeSegmentHeader(header), 0);
      if (fsync) {
        await file.flush();
        await flushDirectory(files, dir);
      }
    } catch (error) {
      await file.close().catch(() => {}); // The first error is the one to report.
      await files.unlink(path).catch(() => {}); // A header without frames: an opening passes over it.
      throw error;
    }
    await this.#activate(header, file);
    this.#isOnReserve = false;
  }

  /** Goes on in the reserve. */
  async beginOnReserve(): Promise<void> {
    const { reserve } = this.#parts;
    if (reserve?.isReady !== true) throw new Error("There is no reserve.");
    this.endSegment();
    const header = this.#nextHeader();
    await this.#activate(header, await reserve.spend(header));
    this.#isOnReserve = true;
  }

  /** Nothing more is written to the active segment. */
  endSegment(): void {
    if (this.#active !== undefined) this.#parts.open.release(this.#active);
    // Zeros follow: only a later header says where its frames end.
    if (this.#active !== undefined && this.#isOnReserve) this.#active.hasInvalidTail = true;
    this.#active = undefined;
    this.#file = undefined;
  }

  /**
   * Writes the frames with one write and makes them durable with one flush. When it rejects, the segment has
   * ended, and what was written behind its valid bytes does not count.
   */
  async append(drafts: readonly FrameDraft[]): Promise<PlacedFrame[]> {
    const segment = this.#active;
    const file = this.#file;
    if (segment === undefined || file === undefined) throw new Error("No segment is open.");
    const { placed, total } = this.#encode(drafts, segment);
    let isAbsent = true;
    try {
      const written = await file.write(this.#buffer, total, segment.validBytes);
      isAbsent = false;
      if (written !== total) throw new ShortWriteError(written, total);
      if (this.#parts.fsync) await file.flush();
    } catch (error) {
      segment.hasInvalidTail = true;
      this.endSegment();
      throw new AppendFailure(error, isAbsent);
    }
    // After the flush, before anybody is told: a new owner that did not see these frames must not be contradicted.
    if (this.#parts.isTakenOver()) throw new TakenOverError("Another process owns the directory.");
    segment.validBytes += total;
    for (let index = 0; index < placed.length; index += 1) {
      if (drafts[index]?.kind !== frameKinds.tombstone) continue;
      const { offset, bytes } = placed[index] as PlacedFrame;
      segment.tombstones.push({ offset, bytes });
    }
    this.#durableSequence = this.#nextSequence - 1;
    if (this.#buffer.length > 4 * 1024 * 1024) this.#buffer = Buffer.allocUnsafe(64 * 1024);
    return placed;
  }

  /** Gives each frame its place and writes it into the buffer. */
  #encode(
    drafts: readonly FrameDraft[],
    segment: LogSegment,
  ): { readonly placed: PlacedFrame[]; readonly total: number } {
    const flushedEnd = segment.validBytes;
    const placed: PlacedFrame[] = [];
    let total = 0;
    for (const draft of drafts) {
      const offset = flushedEnd + total;
      const names = this.#takeNames(offset);
      const bytes = draft.bytes + names.length * NAME_BYTES;
      const sequence = draft.copyOf ?? this.#nextSequence++;
      this.#makeRoom(total, bytes);
      const previousHash = this.#previousHash;
      const place = { segment, offset, sequence, flushedEnd, previousHash, names };
      const inline = encodeFrame(draft, this.#buffer, total, place);
      placed.push({ segment, offset, bytes, sequence, inline });
      const idHash = draft.id.hash;
      this.#previousHash = idHash;
      total += bytes;
      this.#unnamed.push({ idHash, offset, end: flushedEnd + total });
    }
    return { placed, total };
  }

  #makeRoom(used: number, bytes: number): void {
    if (this.#buffer.length >= used + bytes) return;
    const larger = Buffer.allocUnsafe(Math.max(used + bytes, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, used);
    this.#buffer = larger;
  }

  /** The frames that lie far enough in front of a place to be named there. */
  #takeNames(offset: number): readonly FrameName[] {
    let count = 0;
    for (const { end } of this.#unnamed) {
      if (end + NAMING_DISTANCE > offset || count === MAX_NAMES) break;
      count += 1;
    }
    return count === 0 ? noNames : this.#unnamed.splice(0, count);
  }

  #nextHeader(): SegmentHeader {
    const { epoch, randomUint32 } = this.#parts;
    // A number is used once, even if the file was never finished.
    const number = this.#nextNumber;
    if (number >= MAX_NUMBER) throw new RangeError("This opening has begun as many files as it can.");
    this.#nextNumber += 1;
    const predecessor = this.#last && {
      epoch: this.#last.epoch,
      number: this.#last.number,
      validBytes: this.#last.validBytes,
    };
    return { epoch, number, salt: randomUint32() >>> 0, firstSequence: this.#nextSequence, predecessor };
  }

  async #activate(header: SegmentHeader, file: OpenFile): Promise<void> {
    const segment = new LogSegment(header);
    this.#parts.segments.set(segmentKey(segment), segment);
    await this.#parts.open.adopt(segment, file);
    this.#active = segment;
    this.#file = file;
    this.#last = segment;
    this.#previousHash = noHash;
    this.#unnamed = [];
  }
}
