import { attributeDamage, looksTorn } from "./attribute-damage.ts";
import { decodeHeader, decodeMeta, decodeTrailer, isWholeFrame, type FrameMeta } from "./decode-frame.ts";
import { isZero } from "./bytes.ts";
import { identifyFrame } from "./identify-frame.ts";
import type { OpenFile } from "./file-layer.ts";
import { frameBytes, HEADER_BYTES, HEADER_MAGIC, TRAILER_BYTES, type FrameHeader } from "./frame-format.ts";
import type { Damage, LogSegment } from "./log-segment.ts";
import { ScanWindow } from "./scan-window.ts";
import { FRAMES_START } from "./segment-header.ts";

/** A whole frame as it was found. `source` is reused: copy what must outlive the call. */
export interface ScannedFrame {
  readonly header: FrameHeader;
  readonly meta: FrameMeta;
  readonly offset: number;
  readonly bytes: number;
  readonly source: Buffer;
  /** Where the frame begins in `source`. */
  readonly at: number;
}

/** What a scan tells. The calls come in the order of the file. */
export interface ScanVisitor {
  frame(frame: ScannedFrame): void;
  /** `header` where that of the damaged frame is whole. */
  damage(damage: Damage, header?: FrameHeader): void;
  /** Called between reads: the place to wait and to let others run. */
  pause?(): Promise<void>;
}

export interface ScanOptions {
  /** Where to stop: the valid bytes where they are known, else the size of the file. */
  readonly end: number;
  /** Whether zeros up to the end are space that was never written. Not where the end is known. @default false */
  readonly mayEndInZeros?: boolean;
  /** Bytes per read. @default 1 MiB */
  readonly chunkBytes?: number;
}

/**
 * Reads every frame of a segment. Bytes that are no frame are skipped up to the next whole header, so that
 * damage never hides the valid frames behind it; a tail of zeros is space that was never written.
 */
export async function scanSegment(
  file: OpenFile,
  segment: LogSegment,
  { end, mayEndInZeros = false, chunkBytes = 1024 * 1024 }: ScanOptions,
  visitor: ScanVisitor,
): Promise<void> {
  const window = new ScanWindow(file, end, chunkBytes);
  const { salt } = segment;
  const need = async (position: number, length: number): Promise<void> => {
    if (window.holds(position, length)) return;
    await visitor.pause?.();
    await window.load(position, length);
  };

  let offset = FRAMES_START;
  while (offset < window.end) {
    // Awaiting only when bytes are missing: a turn of the loop per frame would triple the time of an opening.
    if (!window.holds(offset, HEADER_BYTES)) await need(offset, HEADER_BYTES);
    if (offset >= window.end) break;
    const header = decodeHeader(window.bytes, window.at(offset), salt);
    if (header === undefined) {
      if (mayEndInZeros && (await isZeroTail(window, offset))) break;
      offset = await skipUnreadable(window, segment, offset, visitor);
      continue;
    }
    const bytes = frameBytes(header, header.names);
    if (offset + bytes <= window.end && !window.holds(offset, bytes)) await need(offset, bytes);
    const at = window.at(offset);
    const whole = offset + bytes <= window.end && isWholeFrame(window.bytes, at, header, salt);
    const meta = whole ? decodeMeta(window.bytes, at, header) : undefined;
    if (meta === undefined) {
      offset = await skipDamaged(window, segment, offset, header, visitor);
      continue;
    }
    visitor.frame({ header, meta, offset, bytes, source: window.bytes, at });
    offset += bytes;
  }
  await visitor.pause?.();
}

/** A good header whose frame is not whole. */
async function skipDamaged(
  window: ScanWindow,
  segment: LogSegment,
  offset: number,
  header: FrameHeader,
  visitor: ScanVisitor,
): Promise<number> {
  const claimedEnd = offset + frameBytes(header, header.names);
  const trailerAt = claimedEnd - TRAILER_BYTES;
  let endsWhereItSays = false;
  if (claimedEnd <= window.end) {
    await window.load(trailerAt, TRAILER_BYTES + HEADER_BYTES);
    endsWhereItSays =
      decodeTrailer(window.bytes, window.at(trailerAt), segment.salt) !== undefined ||
      decodeHeader(window.bytes, window.at(claimedEnd), segment.salt) !== undefined;
  }
  // Where neither end agrees, bytes may be missing in the middle: the next whole header decides.
  const next = endsWhereItSays ? claimedEnd : await findHeader(window, segment, offset + HEADER_BYTES);
  const end = Math.min(claimedEnd, next, window.end);
  const damage = {
    segment,
    offset,
    bytes: end - offset,
    idHash: header.idHash,
    taskId: await identifyFrame(window, offset, end, header.idHash),
    sequence: header.sequence,
    bornAtMs: header.bornAtMs,
    ttlMs: header.ttlMs,
    torn: claimedEnd > window.end || (await looksTorn(window, offset, end)),
    isMarker: false,
  };
  visitor.damage(damage, header);
  return end;
}

/** Bytes where a header should be: up to the next whole header, they belong to damaged frames. */
async function skipUnreadable(
  window: ScanWindow,
  segment: LogSegment,
  offset: number,
  visitor: ScanVisitor,
): Promise<number> {
  const end = await findHeader(window, segment, offset + 1);
  await window.load(end, HEADER_BYTES);
  const next = end < window.end ? decodeHeader(window.bytes, window.at(end), segment.salt) : undefined;
  for (const damage of await attributeDamage(window, segment, offset, end, next)) visitor.damage(damage);
  return end;
}

async function isZeroTail(window: ScanWindow, offset: number): Promise<boolean> {
  for (let from = offset; from < window.end;) {
    if (!window.holds(from, 1)) await window.load(from, 1);
    const at = window.at(from);
    if (!isZero(window.bytes, at, window.bytes.length)) return false;
    from += window.bytes.length - at;
  }
  return true;
}

/** The position of the next whole header, or the end of the scan. */
async function findHeader(window: ScanWindow, segment: LogSegment, from: number): Promise<number> {
  for (let position = from; position + HEADER_BYTES <= window.end;) {
    if (!window.holds(position, HEADER_BYTES)) await window.load(position, HEADER_BYTES);
    const found = window.bytes.indexOf(HEADER_MAGIC, window.at(position));
    if (found < 0) {
      // A magic may lie across the end of what is loaded.
      position += window.bytes.length - window.at(position) - HEADER_MAGIC.length + 1;
      continue;
    }
    position += found - window.at(position);
    if (!window.holds(position, HEADER_BYTES)) await window.load(position, HEADER_BYTES);
    if (decodeHeader(window.bytes, window.at(position), segment.salt) !== undefined) return position;
    position += 1;
  }
  return window.end;
}
