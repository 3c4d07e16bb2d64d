import { crc32 } from "node:zlib";
import { readUint64, writeUint64 } from "./bytes.ts";

/** The format this code writes, and the newest it reads. */
export const FORMAT = 1;

const COPY_BYTES = 128;

/** Between the copies lie 4 KiB, the largest sector of a disk: wherever a hole of that length lies, it spares one. */
const COPIES_AT = [0, COPY_BYTES + 4_096] as const;

/** Both copies of the header lie before this offset; frames begin here. */
export const FRAMES_START: number = COPIES_AT[1] + COPY_BYTES;

/** 0xF5 never occurs in UTF-8 text. */
const MAGIC = Buffer.from([0xf5, 0x4c, 0x4a, 0x57, 0x41, 0x4c, 0x0d, 0x0a]);

/** A segment by its place in the log. */
export interface SegmentId {
  readonly epoch: number;
  readonly number: number;
}

/** What a segment says about itself, and about where the one before it ends. */
export interface SegmentHeader extends SegmentId {
  /** Starts every checksum in this file, so that stale bytes of another file never pass. */
  readonly salt: number;
  /** The first sequence number that was free when the file was made. */
  readonly firstSequence: number;
  /** The segment written before this one, and its valid bytes: whatever follows them was never acknowledged. */
  readonly predecessor: (SegmentId & { readonly validBytes: number }) | undefined;
}

/** The file of a segment: its place in the log, in digits that sort as text. */
export function segmentName({ epoch, number }: SegmentId): string {
  return `segment-${String(epoch).padStart(10, "0")}-${String(number).padStart(10, "0")}.log`;
}

/** The segment that a file name stands for, if it is one. */
export function parseSegmentName(name: string): SegmentId | undefined {
  const match = /^segment-(\d{10})-(\d{10})\.log$/.exec(name);
  return match === null ? undefined : { epoch: Number(match[1]), number: Number(match[2]) };
}

/** Orders segments as they were written. */
export function compareSegments(left: SegmentId, right: SegmentId): number {
  return left.epoch - right.epoch || left.number - right.number;
}

/** The first {@link FRAMES_START} bytes of a segment. */
export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const block = Buffer.alloc(FRAMES_START);
  for (const at of COPIES_AT) {
    const copy = block.subarray(at, at + COPY_BYTES);
    MAGIC.copy(copy);
    copy.writeUInt32LE(FORMAT, 8);
    copy.writeUInt32LE(header.salt, 12);
    writeUint64(copy, header.epoch, 16);
    writeUint64(copy, header.number, 24);
    writeUint64(copy, header.firstSequence, 32);
    writeUint64(copy, header.predecessor?.epoch ?? 0, 40);
    writeUint64(copy, header.predecessor?.number ?? 0, 48);
    writeUint64(copy, header.predecessor?.validBytes ?? 0, 56);
    copy.writeUInt32LE(crc32(copy.subarray(0, COPY_BYTES - 4)), COPY_BYTES - 4);
  }
  return block;
}

/** What the first bytes of a segment turned out to be. */
export type HeaderReading =
  | { readonly kind: "good"; readonly header: SegmentHeader; readonly damagedCopies: number }
  | { readonly kind: "too_new"; readonly format: number }
  | { readonly kind: "unreadable" };

/** Reads whichever copy is whole. */
export function decodeSegmentHeader(block: Buffer): HeaderReading {
  const readings = COPIES_AT.map((at) => decodeCopy(block.subarray(at, at + COPY_BYTES)));
  const good = readings.filter((reading) => reading !== undefined);
  const [reading] = good;
  if (reading === undefined) return { kind: "unreadable" };
  if (typeof reading === "number") return { kind: "too_new", format: reading };
  return { kind: "good", header: reading, damagedCopies: readings.length - good.length };
}

/** The place of the checksum and of the format number is the same in every format, older and newer. */
function decodeCopy(copy: Buffer): SegmentHeader | number | undefined {
  if (copy.length < COPY_BYTES || !copy.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  if (copy.readUInt32LE(COPY_BYTES - 4) !== crc32(copy.subarray(0, COPY_BYTES - 4))) return undefined;
  const format = copy.readUInt32LE(8);
  if (format > FORMAT) return format;
  const predecessor = {
    epoch: readUint64(copy, 40),
    number: readUint64(copy, 48),
    validBytes: readUint64(copy, 56),
  };
  return {
    salt: copy.readUInt32LE(12),
    epoch: readUint64(copy, 16),
    number: readUint64(copy, 24),
    firstSequence: readUint64(copy, 32),
    predecessor: predecessor.epoch === 0 ? undefined : predecessor,
  };
}
