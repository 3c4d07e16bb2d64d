import { FRAMES_START, segmentName, type SegmentHeader, type SegmentId } from "./segment-header.ts";
import type { IdHash } from "./hash-id.ts";

/** Bytes that cannot be read as frames, and what is known about whose they were. */
export interface Damage {
  readonly segment: LogSegment;
  readonly offset: number;
  readonly bytes: number;
  readonly idHash: IdHash | undefined;
  /** Absent when the id itself is lost. */
  readonly taskId: string | undefined;
  /** Absent when neither end of the frame could be read. */
  readonly sequence: number | undefined;
  readonly bornAtMs: number;
  readonly ttlMs: number | null;
  /** True when the bytes look like a write that never ended: cut short, or with a hole of zeros. */
  readonly torn: boolean;
  /** True for a frame that stands for damaged bytes which compaction removed. */
  readonly isMarker: boolean;
}

/** A range of a segment. */
export interface FrameSpan {
  readonly offset: number;
  readonly bytes: number;
}

/** A value of a large field: where its bytes are. */
export interface BlobRef {
  readonly segment: LogSegment;
  readonly offset: number;
  readonly bytes: number;
  readonly checksum: number;
}

/** One file of the log while the store is open. */
export class LogSegment implements SegmentId {
  readonly epoch: number;
  readonly number: number;
  readonly name: string;
  readonly header: SegmentHeader;
  /** Where valid frames end: the end of the last flushed batch. */
  validBytes: number = FRAMES_START;
  /** Bytes that some task still needs. */
  liveBytes = 0;
  /** Where the deletions lie, in the order of the file: the index knows only what exists. */
  readonly tombstones: FrameSpan[] = [];
  /** The size of the file where it is known to be longer than its valid bytes. */
  hasInvalidTail = false;
  /** Readers that rely on the file being there. */
  holds = 0;

  constructor(header: SegmentHeader) {
    this.header = header;
    this.epoch = header.epoch;
    this.number = header.number;
    this.name = segmentName(header);
  }

  get salt(): number {
    return this.header.salt;
  }

  get garbageBytes(): number {
    return this.validBytes - FRAMES_START - this.liveBytes;
  }
}

/** Files that one opening may begin, and openings that a log may see: their product is the safe integers. */
export const MAX_NUMBER: number = 2 ** 24;
export const MAX_EPOCH: number = 2 ** 29;

/** A map key for a segment, which tombstones hold as well. */
export function segmentKey({ epoch, number }: SegmentId): number {
  return epoch * MAX_NUMBER + number;
}
