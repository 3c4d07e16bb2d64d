import { crc32 } from "node:zlib";
import { isZero } from "./bytes.ts";
import { decodeMeta, decodeTrailer, readHash, type FrameTrailer } from "./decode-frame.ts";
import {
  HEADER_BYTES,
  HEADER_MAGIC_WORD,
  TRAILER_BYTES,
  TRAILER_MAGIC,
  TRAILER_MAGIC_AT,
  type FrameHeader,
} from "./frame-format.ts";
import { hasHash, type IdHash } from "./hash-id.ts";
import { identifyFrame } from "./identify-frame.ts";
import type { Damage, LogSegment } from "./log-segment.ts";
import type { ScanWindow } from "./scan-window.ts";

/** Disks write whole sectors: what was never written is zeros from one edge of a sector to the next. */
const SECTOR_BYTES = 512;

/** Enough of a header to hold the hash of the id. */
const HASH_END = 32;

/**
 * Whose frames the unreadable bytes `from`…`to` were: trailers that are still whole name theirs, the frame
 * behind the gap names the one before it, and at last the hash in a header that does not pass its checksum is
 * a good guess. What is left belongs to nobody that could be found.
 */
export async function attributeDamage(
  window: ScanWindow,
  segment: LogSegment,
  from: number,
  to: number,
  next: FrameHeader | undefined,
): Promise<Damage[]> {
  const found: Damage[] = [];
  let start = from;
  for (const { trailer, position } of await findTrailers(window, segment, from, to)) {
    const offset = position - trailer.bodyBytes - HEADER_BYTES;
    if (offset < start) continue;
    if (offset > start) found.push(await nameless(window, segment, start, offset, undefined));
    const bytes = position + TRAILER_BYTES - offset;
    const life = await readLife(window, segment, offset, trailer);
    const torn = await looksTorn(window, offset, offset + bytes);
    found.push({
      segment,
      offset,
      bytes,
      idHash: trailer.idHash,
      taskId: await identifyFrame(window, offset, offset + bytes, trailer.idHash),
      sequence: trailer.sequence,
      torn,
      isMarker: false,
      ...life,
    });
    start = offset + bytes;
  }
  if (start < to) found.push(await nameless(window, segment, start, to, next?.previousHash));
  return found;
}

/**
 * True when a write ended in the middle here: it has nothing but zeros in a sector, or the file stops early. A
 * frame begins and ends with a magic, so its first and last few bytes tell as much as a whole sector.
 */
export async function looksTorn(window: ScanWindow, from: number, to: number): Promise<boolean> {
  for (let start = from; start < to;) {
    const end = Math.min((Math.floor(start / SECTOR_BYTES) + 1) * SECTOR_BYTES, to);
    if (!window.holds(start, end - start)) await window.load(start, SECTOR_BYTES * 128);
    if (isZero(window.bytes, window.at(start), window.at(end))) return true;
    start = end;
  }
  if (to < window.end) return false;
  if (to - from < HEADER_BYTES) return true;
  await window.load(to - TRAILER_BYTES, TRAILER_BYTES);
  return isZero(window.bytes, 0, window.bytes.length);
}

async function findTrailers(
  window: ScanWindow,
  segment: LogSegment,
  from: number,
  to: number,
): Promise<{ trailer: FrameTrailer; position: number }[]> {
  const trailers = [];
  for (let position = from; position + TRAILER_BYTES <= Math.min(to, window.end);) {
    if (!window.holds(position, TRAILER_BYTES)) await window.load(position, TRAILER_BYTES);
    const found = window.bytes.indexOf(TRAILER_MAGIC, window.at(position) + TRAILER_MAGIC_AT);
    if (found < 0) {
      position += window.bytes.length - window.at(position) - TRAILER_BYTES + 1;
      continue;
    }
    position += found - TRAILER_MAGIC_AT - window.at(position);
    if (position + TRAILER_BYTES > to) break;
    if (!window.holds(position, TRAILER_BYTES)) await window.load(position, TRAILER_BYTES);
    const trailer = decodeTrailer(window.bytes, window.at(position), segment.salt);
    if (trailer !== undefined) trailers.push({ trailer, position });
    position += 1;
  }
  return trailers;
}

/** The body repeats birth and life, so a frame whose header is lost still expires, if its body is whole. */
async function readLife(
  window: ScanWindow,
  segment: LogSegment,
  offset: number,
  trailer: FrameTrailer,
): Promise<{ bornAtMs: number; ttlMs: number | null }> {
  const unknown = { bornAtMs: Number.NaN, ttlMs: null };
  await window.load(offset, HEADER_BYTES + trailer.bodyBytes);
  const body = window.bytes.subarray(HEADER_BYTES, HEADER_BYTES + trailer.bodyBytes);
  if (crc32(body, segment.salt) !== trailer.bodyChecksum) return unknown;
  const metaBytes = window.bytes.readUInt32LE(8);
  if (metaBytes > trailer.bodyBytes) return unknown;
  const meta = decodeMeta(window.bytes, 0, { metaBytes, flags: 0 });
  return meta === undefined ? unknown : { bornAtMs: meta.bornAtMs, ttlMs: meta.ttlMs };
}

async function nameless(
  window: ScanWindow,
  segment: LogSegment,
  offset: number,
  end: number,
  hint: IdHash | undefined,
): Promise<Damage> {
  let idHash = hint !== undefined && hasHash(hint) ? hint : undefined;
  if (idHash === undefined && end - offset >= HASH_END) {
    await window.load(offset, HASH_END);
    if (window.bytes.readUInt32LE(0) === HEADER_MAGIC_WORD) idHash = readHash(window.bytes, 24);
  }
  const torn = await looksTorn(window, offset, end);
  const unknown = { sequence: undefined, bornAtMs: Number.NaN, ttlMs: null, isMarker: false };
  const taskId = idHash && (await identifyFrame(window, offset, end, idHash));
  return { segment, offset, bytes: end - offset, idHash, taskId, torn, ...unknown };
}
