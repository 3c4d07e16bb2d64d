import type { IdHash } from "./hash-id.ts";

/*
 * One frame is one write of one task. Little-endian:
 *
 *   header   0 magic · 4 kind · 5 flags · 6 count of names · 8 bytes of the meta part · 12 bytes of the blobs · 16 sequence ·
 *            24 id hash · 32 version · 40 bornAtMs · 48 ttlMs (NaN: never) · 56 flushed bytes of the segment ·
 *            64 id hash of the frame before · 72 checksum of the body · 76 checksum of the header
 *   body     meta: id · bornAtMs · ttlMs · table of large fields · small fields as JSON text, then the blobs,
 *            then names: id hash and distance of frames at least 4 KiB in front of this one
 *   trailer  0 bytes of the body · 4 sequence · 12 id hash · 20 checksum of the body ·
 *            24 checksum of the trailer · 28 magic
 *
 * Header and trailer name the task twice, so that one of them can say whose frame it was when the other is
 * damaged. Each frame is named once more, by the first one that begins at least 4 KiB behind it: a hole of that
 * length hides no name. A frame begins and ends with a magic, so no part of it that ends at a sector's edge is zeros by
 * nature. All checksums start from the salt of the segment.
 */

/** 0xF5 never occurs in UTF-8 text, so no payload looks like a frame. */
export const HEADER_MAGIC: Buffer = Buffer.from([0xf5, 0x4c, 0x4a, 0x46]);
export const TRAILER_MAGIC: Buffer = Buffer.from([0xf5, 0x4c, 0x4a, 0x54]);
export const HEADER_MAGIC_WORD: number = HEADER_MAGIC.readUInt32LE();
export const TRAILER_MAGIC_WORD: number = TRAILER_MAGIC.readUInt32LE();

export const HEADER_BYTES = 80;
export const TRAILER_BYTES = 32;

/** Where the magic lies in a trailer: its last bytes. */
export const TRAILER_MAGIC_AT = 28;

/** A name: the id hash of a frame, and how far in front of the one that names it that frame begins. */
export const NAME_BYTES = 12;

/** The largest sector of a disk: between a frame and the one that names it lies at least one. */
export const NAMING_DISTANCE = 4_096;

export const frameKinds = {
  /** The whole of a task: small fields, and large ones or references to them. */
  image: 1,
  /** The task was deleted after it expired. */
  tombstone: 2,
  /** The task was found damaged, and the damaged bytes are gone from the log. */
  marker: 3,
} as const;

export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

/** The id is UTF-16, because it holds a lone surrogate that UTF-8 cannot. */
export const FLAG_UTF16_ID = 1;
/** A copy made by compaction: it has the sequence number of its original. */
export const FLAG_COPY = 2;

/** The frame of a task that is open: neither terminal nor of another kind. An opening finds by it what may be claimed. */
export const FLAG_OPEN = 4;

/**
 * Written by an opening that settles what a killed owner left. Any other frame says that the opening has done: only
 * then does a store write.
 */
export const FLAG_SETTLING = 8;

/** An encoded field larger than this is kept apart, so that a change of the status does not rewrite it. */
export const LARGE_FIELD_BYTES = 512;

/** Lengths, birth and life in the meta part; the id, the table and the small fields come on top. */
export const META_FIXED_BYTES: number = 4 + 8 + 8 + 4;

/** Fixed bytes of one entry in the table of large fields; the name comes on top. */
export const BLOB_ENTRY_BYTES: number = 2 + 8 + 8 + 8 + 4 + 4;

/** The fixed part of a frame. */
export interface FrameHeader {
  readonly kind: FrameKind;
  readonly flags: number;
  readonly metaBytes: number;
  readonly blobsBytes: number;
  /** How many earlier frames it names. */
  readonly names: number;
  readonly sequence: number;
  readonly idHash: IdHash;
  readonly version: number;
  readonly bornAtMs: number;
  readonly ttlMs: number | null;
  /** Where the batch of this frame begins: everything in front of it in the segment had been flushed. */
  readonly flushedEnd: number;
  readonly previousHash: IdHash;
  readonly bodyChecksum: number;
}

/** The bytes between the header and the trailer of a frame. */
export function bodyBytes(parts: { metaBytes: number; blobsBytes: number }, names: number): number {
  return parts.metaBytes + parts.blobsBytes + names * NAME_BYTES;
}

/** All bytes of a frame. */
export function frameBytes(parts: { metaBytes: number; blobsBytes: number }, names: number): number {
  return HEADER_BYTES + bodyBytes(parts, names) + TRAILER_BYTES;
}
