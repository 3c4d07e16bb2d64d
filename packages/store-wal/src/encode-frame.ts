import { crc32 } from "node:zlib";
import { writeUint64 } from "./bytes.ts";
import type { FrameDraft, SmallFields } from "./draft-frame.ts";
import {
  bodyBytes,
  FLAG_COPY,
  FLAG_OPEN,
  FLAG_SETTLING,
  FLAG_UTF16_ID,
  HEADER_BYTES,
  HEADER_MAGIC_WORD,
  NAME_BYTES,
  TRAILER_MAGIC_AT,
  TRAILER_MAGIC_WORD,
} from "./frame-format.ts";
import type { IdHash } from "./hash-id.ts";
import type { BlobRef, LogSegment } from "./log-segment.ts";
import { smallChecksum } from "./small-checksum.ts";

/** Where a frame goes, and what the log knows at that moment. */
export interface FramePlace {
  readonly segment: LogSegment;
  /** Offset of the frame in the segment. */
  readonly offset: number;
  readonly sequence: number;
  /** Where the batch begins. */
  readonly flushedEnd: number;
  readonly previousHash: IdHash;
  /** The earlier frames of the segment that this one names. */
  readonly names: readonly FrameName[];
}

/** A frame as another one names it. */
export interface FrameName {
  readonly idHash: IdHash;
  readonly offset: number;
}

/**
 * Writes the frame into `target` at `at`.
 *
 * @returns The references to the blobs that lie in this frame, in the order of `draft.blobs`; `undefined` for
 * those that lie elsewhere.
 */
export function encodeFrame(
  draft: FrameDraft,
  target: Buffer,
  at: number,
  place: FramePlace,
): readonly (BlobRef | undefined)[] {
  const { segment } = place;
  const bodyAt = at + HEADER_BYTES;
  const bytes = bodyBytes(draft, place.names.length);

  const inline =
    draft.blobs.length === 0 ? noBlobs : encodeBlobs(draft, target, bodyAt + draft.metaBytes, place);
  encodeMeta(draft, target, bodyAt, inline);
  encodeNames(place, target, bodyAt + draft.metaBytes + draft.blobsBytes);
  const bodyChecksum = crc32(target.subarray(bodyAt, bodyAt + bytes), segment.salt);

  target.writeUInt32LE(HEADER_MAGIC_WORD, at);
  target.writeUInt16LE(draft.kind | (flagsOf(draft) << 8), at + 4);
  target.writeUInt16LE(place.names.length, at + 6);
  target.writeUInt32LE(draft.metaBytes, at + 8);
  target.writeUInt32LE(draft.blobsBytes, at + 12);
  writeUint64(target, place.sequence, at + 16);
  writeHash(target, draft.id.hash, at + 24);
  target.writeDoubleLE(draft.version, at + 32);
  target.writeDoubleLE(draft.bornAtMs, at + 40);
  target.writeDoubleLE(draft.ttlMs ?? Number.NaN, at + 48);
  writeUint64(target, place.flushedEnd, at + 56);
  writeHash(target, place.previousHash, at + 64);
  target.writeUInt32LE(bodyChecksum, at + 72);
  target.writeUInt32LE(smallChecksum(target, at, at + 76, segment.salt), at + 76);

  const trailerAt = bodyAt + bytes;
  target.writeUInt32LE(bytes, trailerAt);
  writeUint64(target, place.sequence, trailerAt + 4);
  writeHash(target, draft.id.hash, trailerAt + 12);
  target.writeUInt32LE(bodyChecksum, trailerAt + 20);
  target.writeUInt32LE(smallChecksum(target, trailerAt, trailerAt + 24, segment.salt), trailerAt + 24);
  target.writeUInt32LE(TRAILER_MAGIC_WORD, trailerAt + TRAILER_MAGIC_AT);
  return inline;
}

function flagsOf({ id: { utf16 }, copyOf, isOpen: open, isSettling }: FrameDraft): number {
  return (
    (utf16 ? FLAG_UTF16_ID : 0) |
    (copyOf === undefined ? 0 : FLAG_COPY) |
    (open ? FLAG_OPEN : 0) |
    (isSettling ? FLAG_SETTLING : 0)
  );
}

const noBlobs: readonly (BlobRef | undefined)[] = [];

function encodeNames({ names, offset }: FramePlace, target: Buffer, namesAt: number): void {
  let at = namesAt;
  for (const name of names) {
    writeHash(target, name.idHash, at);
    target.writeUInt32LE(offset - name.offset, at + 8);
    at += NAME_BYTES;
  }
}

function encodeBlobs(
  draft: FrameDraft,
  target: Buffer,
  blobsAt: number,
  place: FramePlace,
): (BlobRef | undefined)[] {
  const { segment } = place;
  const inline: (BlobRef | undefined)[] = [];
  let at = blobsAt;
  let offset = place.offset + HEADER_BYTES + draft.metaBytes;
  for (const blob of draft.blobs) {
    if (blob.ref !== undefined || blob.content === undefined) {
      inline.push(undefined);
      continue;
    }
    writeContent(target, blob.content, at);
    const checksum = crc32(target.subarray(at, at + blob.bytes), segment.salt);
    inline.push({ segment, offset, bytes: blob.bytes, checksum });
    at += blob.bytes;
    offset += blob.bytes;
  }
  return inline;
}

function encodeMeta(
  draft: FrameDraft,
  target: Buffer,
  metaAt: number,
  inline: readonly (BlobRef | undefined)[],
): void {
  const { id } = draft;
  target.writeUInt32LE(id.bytes, metaAt);
  target.write(id.taskId, metaAt + 4, id.utf16 ? "utf16le" : "utf8");
  let at = metaAt + 4 + id.bytes;
  target.writeDoubleLE(draft.bornAtMs, at);
  target.writeDoubleLE(draft.ttlMs ?? Number.NaN, at + 8);
  target.writeUInt32LE(draft.blobs.length, at + 16);
  at += 20;
  for (const [index, blob] of draft.blobs.entries()) {
    const ref = blob.ref ?? inline[index];
    if (ref === undefined) throw new Error(`The field ${blob.key} has neither a value nor a place.`);
    const keyBytes = target.write(blob.key, at + 2);
    target.writeUInt16LE(keyBytes, at);
    at += 2 + keyBytes;
    writeUint64(target, ref.segment.epoch, at);
    writeUint64(target, ref.segment.number, at + 8);
    writeUint64(target, ref.offset, at + 16);
    target.writeUInt32LE(ref.bytes, at + 24);
    target.writeUInt32LE(ref.checksum, at + 28);
    at += 32;
  }
  writeSmall(target, draft.small, at);
}

/** As one text: a write into the buffer costs more than putting a few strings together. */
function writeSmall(target: Buffer, small: SmallFields, at: number): void {
  if (typeof small === "string" || Buffer.isBuffer(small)) {
    writeContent(target, small, at);
    return;
  }
  let members = "";
  for (const { member } of small) if (member !== undefined) members += member;
  const end = at + target.write(members, at);
  target[at] = OPENING_BRACE;
  target[end === at ? at + 1 : end] = CLOSING_BRACE;
}

const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

function writeContent(target: Buffer, content: string | Buffer, at: number): void {
  if (typeof content === "string") target.write(content, at);
  else content.copy(target, at);
}

function writeHash(target: Buffer, hash: IdHash, at: number): void {
  target.writeUInt32LE(hash.low, at);
  target.writeUInt32LE(hash.high, at + 4);
}
