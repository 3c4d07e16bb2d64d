import { segmentKey, type LogSegment } from "./log-segment.ts";
import type { LogWriter } from "./log-writer.ts";
import { FRAMES_START } from "./segment-header.ts";

/** Copying four bytes to free one costs more than it gives. */
const LEAST_GARBAGE = 0.2;

/**
 * The segment whose compaction gives back the most for the least copying. The one being written is chosen only
 * when it is the best: the log goes on in a new file then.
 */
export function pickSegment(
  segments: readonly LogSegment[],
  tried: ReadonlySet<LogSegment>,
  writer: Pick<LogWriter, "active" | "last" | "isOnReserve" | "hasRoomForHousekeeping">,
  floorBytes: number,
): LogSegment | undefined {
  let best: LogSegment | undefined;
  for (const segment of segments) {
    if (tried.has(segment) || garbageShare(segment) < LEAST_GARBAGE || isKeeper(segment, segments)) continue;
    // A clean close names the last file, so its absence means that it was lost.
    if (segment === writer.last && segment !== writer.active) continue;
    if (segment === writer.active && segment.garbageBytes < floorBytes / 2) continue;
    if (writer.isOnReserve) {
      if (segment === writer.active) continue;
      if (segment.liveBytes > 0 && !writer.hasRoomForHousekeeping(segment.liveBytes)) continue;
    }
    if (best === undefined || garbageShare(segment) > garbageShare(best)) best = segment;
  }
  return best;
}

function garbageShare(segment: LogSegment): number {
  const bytes = segment.validBytes - FRAMES_START;
  return bytes === 0 ? 1 : segment.garbageBytes / bytes;
}

/** A header that says where its predecessor ends must outlive a predecessor whose file goes on: see `canForget`. */
function isKeeper({ header: { predecessor } }: LogSegment, segments: readonly LogSegment[]): boolean {
  if (predecessor === undefined) return false;
  const key = segmentKey(predecessor);
  return segments.some((segment) => segment.hasInvalidTail && segmentKey(segment) === key);
}
