import { crc32 } from "node:zlib";
import { readUint64 } from "./bytes.ts";
import type { FrameName } from "./encode-frame.ts";
import {
  bodyBytes,
  FLAG_UTF16_ID,
  frameKinds,
  HEADER_BYTES,
  HEADER_MAGIC_WORD,
  META_FIXED_BYTES,
  NAME_BYTES,
  TRAILER_BYTES,
  TRAILER_MAGIC_AT,
  TRAILER_MAGIC_WORD,
  type FrameHeader,
  type FrameKind,
} from "./frame-format.ts";
import type { IdHash } from "./hash-id.ts";
import type { SegmentId } from "./segment-header.ts";
import { smallChecksum } from "./small-checksum.ts";

/** Where the value of a large field is said to be. */
export interface BlobEntry extends SegmentId {
  /** The name as a JSON string. */
  readonly key: string;
  readonly offset: number;
  readonly bytes: number;
  readonly checksum: number;
}

/** The variable part of a frame, without its blobs. */
export interface FrameMeta {
  readonly taskId: string;
  readonly bornAtMs: number;
  readonly ttlMs: number | null;
  readonly blobs: readonly BlobEntry[];
  /** Offset of the small fields' text in the buffer that was read. */
  readonly smallAt: number;
  readonly smallBytes: number;
}

/** What the end of a frame says about it. */
export interface FrameTrailer {
  readonly bodyBytes: number;
  readonly sequence: number;
  readonly idHash: IdHash;
  readonly bodyChecksum: number;
}

/** The header at `at`, if one is there and whole. */
export function decodeHeader(source: Buffer, at: number, salt: number): FrameHeader | undefined {
  if (at + HEADER_BYTES > source.length || source.readUInt32LE(at) !== HEADER_MAGIC_WORD) return undefined;
  if (source.readUInt32LE(at + 76) !== smallChecksum(source, at, at + 76, salt)) return undefined;
  const kind = source[at + 4] as FrameKind;
  if (kind !== frameKinds.image && kind !== frameKinds.tombstone && kind !== frameKinds.marker)
    return undefined;
  const ttlMs = source.readDoubleLE(at + 48);
  return {
    kind,
    flags: source[at + 5] ?? 0,
    metaBytes: source.readUInt32LE(at + 8),
    blobsBytes: source.readUInt32LE(at + 12),
    names: source.readUInt16LE(at + 6),
    sequence: readUint64(source, at + 16),
    idHash: readHash(source, at + 24),
    version: source.readDoubleLE(at + 32),
    bornAtMs: source.readDoubleLE(at + 40),
    ttlMs: Number.isNaN(ttlMs) ? null : ttlMs,
    flushedEnd: readUint64(source, at + 56),
    previousHash: readHash(source, at + 64),
    bodyChecksum: source.readUInt32LE(at + 72),
  };
}

/** The trailer at `at`, if one is there and whole. */
export function decodeTrailer(source: Buffer, at: number, salt: number): FrameTrailer | undefined {
  if (at < 0 || at + TRAILER_BYTES > source.length) return undefined;
  if (source.readUInt32LE(at + TRAILER_MAGIC_AT) !== TRAILER_MAGIC_WORD) return undefined;
  if (source.readUInt32LE(at + 24) !== smallChecksum(source, at, at + 24, salt)) return undefined;
  return {
    bodyBytes: source.readUInt32LE(at),
    sequence: readUint64(source, at + 4),
    idHash: readHash(source, at + 12),
    bodyChecksum: source.readUInt32LE(at + 20),
  };
}

/** Whether the frame whose header is at `at` is whole: its body passes, and its trailer repeats its header. */
export function isWholeFrame(source: Buffer, at: number, header: FrameHeader, salt: number): boolean {
  const bytes = bodyBytes(header, header.names);
  const bodyAt = at + HEADER_BYTES;
  const trailer = decodeTrailer(source, bodyAt + bytes, salt);
  return (
    trailer !== undefined &&
    trailer.bodyBytes === bytes &&
    trailer.sequence === header.sequence &&
    trailer.idHash.low === header.idHash.low &&
    trailer.idHash.high === header.idHash.high &&
    trailer.bodyChecksum === header.bodyChecksum &&
    crc32(source.subarray(bodyAt, bodyAt + bytes), salt) === header.bodyChecksum
  );
}

/** The meta part of a whole frame; `undefined` when its lengths do not add up. */
export function decodeMeta(
  source: Buffer,
  at: number,
  header: Pick<FrameHeader, "metaBytes" | "flags">,
): FrameMeta | undefined {
  const metaAt = at + HEADER_BYTES;
  const metaEnd = metaAt + header.metaBytes;
  if (header.metaBytes < META_FIXED_BYTES) return undefined;
  const idEnd = metaAt + 4 + source.readUInt32LE(metaAt);
  if (idEnd + 20 > metaEnd) return undefined;
  const ttlMs = source.readDoubleLE(idEnd + 8);
  const taskId = source.toString(
    (header.flags & FLAG_UTF16_ID) === 0 ? "utf8" : "utf16le",
    metaAt + 4,
    idEnd,
  );
  const blobs: BlobEntry[] = [];
  let cursor = idEnd + 20;
  for (let left = source.readUInt32LE(idEnd + 16); left > 0; left -= 1) {
    if (cursor + 2 > metaEnd) return undefined;
    const keyEnd = cursor + 2 + source.readUInt16LE(cursor);
    if (keyEnd + 32 > metaEnd) return undefined;
    blobs.push({
      key: source.toString("utf8", cursor + 2, keyEnd),
      epoch: readUint64(source, keyEnd),
      number: readUint64(source, keyEnd + 8),
      offset: readUint64(source, keyEnd + 16),
      bytes: source.readUInt32LE(keyEnd + 24),
      checksum: source.readUInt32LE(keyEnd + 28),
    });
    cursor = keyEnd + 32;
  }
  return {
    taskId,
    bornAtMs: source.readDoubleLE(idEnd),
    ttlMs: Number.isNaN(ttlMs) ? null : ttlMs,
    blobs,
    smallAt: cursor,
    smallBytes: metaEnd - cursor,
  };
}

/** The frames that a whole frame names; `at` is where it lies in `source`, `offset` where in the segment. */
export function decodeNames(source: Buffer, at: number, offset: number, header: FrameHeader): FrameName[] {
  const namesAt = at + HEADER_BYTES + header.metaBytes + header.blobsBytes;
  return Array.from({ length: header.names }, (_, index) => {
    const nameAt = namesAt + index * NAME_BYTES;
    return { idHash: readHash(source, nameAt), offset: offset - source.readUInt32LE(nameAt + 8) };
  });
}

/** A hash as the frame has it. */
export function readHash(source: Buffer, at: number): IdHash {
  return { low: source.readUInt32LE(at), high: source.readUInt32LE(at + 4) };
}
