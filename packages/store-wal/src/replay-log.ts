import { join } from "node:path";
import { CollectedFrames, type ScannedEnd } from "./collect-frames.ts";
import { readFully, type FileLayer } from "./file-layer.ts";
import { LogSegment, segmentKey, type Damage } from "./log-segment.ts";
import { judgeDamage, type Verdict } from "./judge-damage.ts";
import {
  compareSegments,
  decodeSegmentHeader,
  FRAMES_START,
  parseSegmentName,
  segmentName,
  type SegmentId,
} from "./segment-header.ts";
import type { TaskIndex } from "./task-index.ts";
import { walErrors } from "./wal-errors.ts";

/** How a clean close left the log: from then on a missing byte is damage, not a write that never ended. */
export interface CleanEnd extends SegmentId {
  readonly validBytes: number;
  readonly sequence: number;
}

/** The log as it was found. */
export interface ReplayedLog {
  readonly segments: Map<number, LogSegment>;
  readonly index: TaskIndex;
  readonly nextSequence: number;
  /** The segment written last. */
  readonly last: LogSegment | undefined;
  readonly verdict: Verdict;
  /** Tasks that may be claimed: whoever held them has gone. */
  readonly openTasks: ReadonlySet<string>;
  /** Files that no clean close vouches for: what was read there may be nowhere but in the memory of the system. */
  readonly unflushed: readonly LogSegment[];
}

/** Room between the sequence numbers of two openings, for frames so damaged that theirs is unknown. */
const SEQUENCE_GAP = 1_048_576;

/** Reads the whole log once, front to back, keeping one small entry per task. Changes nothing on disk. */
export async function replayLog(
  files: FileLayer,
  dir: string,
  cleanEnds: readonly CleanEnd[],
): Promise<ReplayedLog> {
  const found = await readHeaders(files, dir);
  const { segments, unreadable } = found;
  const chain = found.chain.filter(({ segment }) => !isBetween(segment, found.chain));
  for (const { segment } of found.chain) {
    if (isBetween(segment, found.chain)) segments.delete(segmentKey(segment));
  }
  const replay = new CollectedFrames(segments);
  replay.damages.push(...unreadable);

  const ends: ScannedEnd[] = [];
  for (const [position, { segment, size }] of chain.entries()) {
    const known = endOf(segment, chain, cleanEnds);
    const isLast = position === chain.length - 1;
    const end = Math.min(size, known ?? size);
    segment.hasInvalidTail = size > end;
    segment.validBytes = end;
    if (known !== undefined && size < known) replay.damages.push(nobodys(segment, size, known - size));
    const scanned = await replay.scan(files, dir, segment, {
      end,
      mayEndInZeros: isLast && known === undefined,
    });
    if (isLast && known === undefined) replay.tail = scanned;
    ends.push(scanned);
  }
  for (const end of ends.toReversed()) {
    if (isVouchedFor(end.segment, cleanEnds)) break;
    replay.unsettled.set(end.segment, end);
    if (end.hasWrites) break;
  }
  for (const { sequence } of cleanEnds) replay.sawSequence(sequence);
  const missing = findMissing(found, cleanEnds);
  if (missing !== undefined) replay.damages.push(missing);

  const { index, verdict, tailEnd } = judgeDamage(replay);
  const last = chain.at(-1)?.segment;
  if (replay.tail !== undefined) trimTail(replay.tail.segment, tailEnd);
  const { openTasks } = replay;
  return {
    openTasks,
    unflushed: chain.map(({ segment }) => segment).filter((segment) => !isVouchedFor(segment, cleanEnds)),
    segments,
    index,
    nextSequence: replay.highestSequence + 1 + SEQUENCE_GAP,
    last,
    verdict,
  };
}

interface FoundSegment {
  readonly segment: LogSegment;
  readonly size: number;
}

async function readHeaders(
  files: FileLayer,
  dir: string,
): Promise<{ segments: Map<number, LogSegment>; chain: FoundSegment[]; unreadable: Damage[] }> {
  const ids = (await files.list(dir)).map(parseSegmentName).filter((id) => id !== undefined);
  const segments = new Map<number, LogSegment>();
  const chain: FoundSegment[] = [];
  const unreadable: Damage[] = [];
  for (const id of ids.toSorted(compareSegments)) {
    const name = segmentName(id);
    const file = await files.open(join(dir, name), "r");
    try {
      const size = await file.size();
      const block = Buffer.alloc(FRAMES_START);
      await readFully(file, block, FRAMES_START, 0);
      const reading = decodeSegmentHeader(block);
      if (reading.kind === "too_new") throw walErrors.tooNew(name, reading.format);
      // A file under another's name would be found twice, or not at all.
      if (reading.kind === "good" && compareSegments(reading.header, id) === 0) {
        const segment = new LogSegment(reading.header);
        segments.set(segmentKey(segment), segment);
        chain.push({ segment, size });
        // A file without frames may have been cut off while its header was written.
        if (reading.damagedCopies > 0 && size > FRAMES_START)
          unreadable.push(nobodys(segment, 0, FRAMES_START));
      } else if (size > FRAMES_START) {
        // Without its salt nothing in it can be trusted. A file that ends here was never begun.
        unreadable.push(nobodys(unknownSegment(id), 0, size));
      }
    } finally {
      await file.close();
    }
  }
  return { segments, chain, unreadable };
}

/** A file that a later segment passes over was never part of the log: its creation failed, or its owner had lost the lock. */
function isBetween(segment: LogSegment, chain: readonly FoundSegment[]): boolean {
  return chain.some(({ segment: { header } }) => {
    const { predecessor } = header;
    return (
      predecessor !== undefined &&
      compareSegments(segment, header) < 0 &&
      compareSegments(predecessor, segment) < 0
    );
  });
}

/** The last file of the log, where the last clean close names a file that is not there. */
function findMissing(
  { chain, unreadable }: { chain: readonly FoundSegment[]; unreadable: readonly Damage[] },
  cleanEnds: readonly CleanEnd[],
): Damage | undefined {
  const end = cleanEnds.toSorted(compareSegments).at(-1);
  if (end === undefined) return undefined;
  const there = [...chain, ...unreadable].map(({ segment }) => segment);
  if (there.some((segment) => compareSegments(segment, end) >= 0)) return undefined;
  const { epoch, number, validBytes } = end;
  return nobodys(unknownSegment({ epoch, number }), 0, validBytes);
}

/** A file whose header cannot be read. */
function unknownSegment(id: SegmentId): LogSegment {
  return new LogSegment({ ...id, salt: 0, firstSequence: 1, predecessor: undefined });
}

/** Whoever closes a log has flushed everything in front of its end. */
function isVouchedFor(segment: LogSegment, cleanEnds: readonly CleanEnd[]): boolean {
  return cleanEnds.some((end) => compareSegments(segment, end) <= 0);
}

/** Where a successor or a clean close says that a segment ends. */
function endOf(
  segment: LogSegment,
  chain: readonly FoundSegment[],
  cleanEnds: readonly CleanEnd[],
): number | undefined {
  for (const {
    segment: { header },
  } of chain) {
    const { predecessor } = header;
    if (predecessor !== undefined && compareSegments(predecessor, segment) === 0)
      return predecessor.validBytes;
  }
  const ends = cleanEnds.filter((end) => compareSegments(end, segment) === 0).map((end) => end.validBytes);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** What follows the last frame that counts was never acknowledged; the next segment will say so. */
function trimTail(tail: LogSegment, end: number): void {
  tail.hasInvalidTail ||= end < tail.validBytes;
  tail.validBytes = end;
}

function nobodys(segment: LogSegment, offset: number, bytes: number): Damage {
  const unknown = {
    idHash: undefined,
    taskId: undefined,
    sequence: undefined,
    bornAtMs: Number.NaN,
    ttlMs: null,
  };
  return { segment, offset, bytes, ...unknown, torn: false, isMarker: false };
}
