import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeHeader, decodeMeta, isWholeFrame } from "./decode-frame.ts";
import { frameKinds } from "./frame-format.ts";
import { segmentKey, type FrameSpan, type LogSegment } from "./log-segment.ts";
import type { RecordReader } from "./read-record.ts";
import type { RelocateFrames } from "./relocate-frames.ts";
import { needsSegment, type TaskEntry, type TaskIndex } from "./task-index.ts";
import { decodeTombstone, type TombstoneRange } from "./tombstone.ts";

export interface MoveSegmentParts {
  readonly segments: ReadonlyMap<number, LogSegment>;
  readonly index: TaskIndex;
  readonly reader: RecordReader;
  readonly relocate: RelocateFrames;
  /** True when the store closes: the slice at hand is the last. */
  isStopped(): boolean;
}

/** Index entries looked at between two turns of the event loop. */
const INDEX_SLICE = 4_000;

/** Read, copied and appended between two turns. */
const SLICE_BYTES = 256 * 1024;
const SLICE_FRAMES = 64;

/** Frames of so many bytes are put in order at once: to sort those of a whole file would hold up the event loop. */
const REGION_BYTES = 1024 * 1024;

/** Reading so many bytes that nobody needs is cheaper than a further read. */
const MAX_GAP_BYTES = 16 * 1024;

/**
 * Appends to the log what is still needed of a segment: the newest frames and the large fields that the index
 * finds there, and the deletions whose older frames may lie elsewhere. Superseded frames are not even read.
 */
export async function moveSegment(victim: LogSegment, parts: MoveSegmentParts): Promise<void> {
  await moveTasks(victim, parts);
  await moveTombstones(victim, parts);
}

interface NeededTask extends FrameSpan {
  readonly taskId: string;
  readonly entry: TaskEntry;
}

async function moveTasks(victim: LogSegment, parts: MoveSegmentParts): Promise<void> {
  const { index, reader, relocate } = parts;
  const regionCount = Math.ceil(victim.validBytes / REGION_BYTES);
  const regions = Array.from({ length: regionCount }, (): NeededTask[] => []);
  const elsewhere: string[] = [];
  let seen = 0;
  for (const [taskId, entry] of index.named()) {
    seen += 1;
    if (seen % INDEX_SLICE === 0) await nextTurn();
    if (!needsSegment(entry, victim)) continue;
    // A damaged frame is not read again, and a frame in another segment only refers to a field in this one.
    if (entry.segment !== victim || entry.damage !== null) elsewhere.push(taskId);
    else {
      const { offset, bytes } = entry;
      regions[Math.floor(offset / REGION_BYTES)]?.push({ taskId, entry, offset, bytes });
    }
  }
  for (const region of regions) {
    region.sort((left, right) => left.offset - right.offset);
    for (const slice of slices(region)) {
      if (parts.isStopped()) return;
      const bytes = await reader.readRaw({ segment: victim, offset: slice.offset, bytes: slice.bytes });
      const moves = slice.places.map(({ taskId, entry, offset }) => {
        const at = offset - slice.offset;
        return relocate.task(taskId, victim, { entry, bytes: bytes.subarray(at, at + entry.bytes) });
      });
      await Promise.all(moves);
      await nextTurn();
    }
  }
  for (let from = 0; from < elsewhere.length && !parts.isStopped(); from += SLICE_FRAMES) {
    const moves = elsewhere.slice(from, from + SLICE_FRAMES).map((taskId) => relocate.task(taskId, victim));
    await Promise.all(moves);
    await nextTurn();
  }
}

async function moveTombstones(victim: LogSegment, parts: MoveSegmentParts): Promise<void> {
  for (const slice of slices(victim.tombstones)) {
    if (parts.isStopped()) return;
    const bytes = await parts.reader.readRaw({ segment: victim, offset: slice.offset, bytes: slice.bytes });
    const moves = slice.places.map((place) =>
      moveTombstone(bytes.subarray(place.offset - slice.offset), victim, parts),
    );
    await Promise.all(moves);
    await nextTurn();
  }
}

/** A deletion that is damaged by now was reported when its segment was read; nothing can be kept of it. */
async function moveTombstone(
  source: Buffer,
  victim: LogSegment,
  { segments, relocate }: MoveSegmentParts,
): Promise<void> {
  const header = decodeHeader(source, 0, victim.salt);
  if (header?.kind !== frameKinds.tombstone || !isWholeFrame(source, 0, header, victim.salt)) return;
  const meta = decodeMeta(source, 0, header);
  if (meta === undefined) return;
  const range = decodeTombstone(source, meta);
  if (isNeeded(range, victim, segments)) await relocate.tombstone(meta.taskId, header, range);
}

/** A tombstone goes when no other segment is left that may hold an older frame of its task. */
function isNeeded(
  { since, until }: TombstoneRange,
  victim: LogSegment,
  segments: ReadonlyMap<number, LogSegment>,
): boolean {
  const own = segmentKey(victim);
  for (const key of segments.keys()) if (key !== own && key >= since && key <= until) return true;
  return false;
}

interface Slice<Place> extends FrameSpan {
  readonly places: readonly Place[];
}

/** Neighbours in the file, by their offset, as ranges that one read takes. */
function* slices<Place extends FrameSpan>(places: readonly Place[]): Iterable<Slice<Place>> {
  for (let from = 0; from < places.length;) {
    const first = places[from] as Place;
    let to = from + 1;
    let end = first.offset + first.bytes;
    for (; to < places.length && to - from < SLICE_FRAMES; to += 1) {
      const next = places[to] as Place;
      const nextEnd = next.offset + next.bytes;
      if (next.offset - end > MAX_GAP_BYTES || nextEnd - first.offset > SLICE_BYTES) break;
      end = nextEnd;
    }
    yield { offset: first.offset, bytes: end - first.offset, places: places.slice(from, to) };
    from = to;
  }
}
