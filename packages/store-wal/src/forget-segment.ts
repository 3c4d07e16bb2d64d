import { join } from "node:path";
import { flushDirectory, persist, type FileLayer } from "./file-layer.ts";
import { segmentKey, type LogSegment } from "./log-segment.ts";
import { QUARANTINE } from "./quarantine.ts";
import type { SegmentFiles } from "./segment-files.ts";
import { compareSegments, parseSegmentName, segmentName, type SegmentId } from "./segment-header.ts";

export interface ForgetParts {
  readonly files: FileLayer;
  readonly dir: string;
  readonly segments: ReadonlyMap<number, LogSegment>;
  readonly open: SegmentFiles;
}

/**
 * Whether the log can do without the header of a segment: it says where the one before it ends, and which files
 * are not part of the log. Files that it passes over are moved to the quarantine first. An owner that was taken for
 * dead may have written since the opening, so the disk is asked, not the memory.
 */
export async function canForget(segment: LogSegment, parts: ForgetParts): Promise<boolean> {
  const { predecessor } = segment.header;
  if (predecessor === undefined) return true;
  await movePassedOver(predecessor, segment, parts);
  const before = parts.segments.get(segmentKey(predecessor));
  if (before === undefined) return true;
  // Files of this opening have one writer, which knows their tails.
  if (before.epoch !== segment.epoch) before.hasInvalidTail ||= await hasGrown(before, parts.open);
  return !before.hasInvalidTail;
}

async function hasGrown(segment: LogSegment, open: SegmentFiles): Promise<boolean> {
  open.hold(segment);
  try {
    return (await (await open.file(segment)).size()) > segment.validBytes;
  } finally {
    open.release(segment);
  }
}

async function movePassedOver(
  predecessor: SegmentId,
  segment: LogSegment,
  { files, dir, segments }: ForgetParts,
): Promise<void> {
  const { epoch, number } = predecessor;
  if (epoch === segment.epoch && number + 1 === segment.number) return;
  const passedOver = (await files.list(dir))
    .map(parseSegmentName)
    .filter((id) => id !== undefined)
    .filter((id) => compareSegments(predecessor, id) < 0 && compareSegments(id, segment) < 0)
    .filter((id) => !segments.has(segmentKey(id)));
  if (passedOver.length === 0) return;
  const aside = join(dir, QUARANTINE);
  await files.makeDirectory(aside);
  for (const id of passedOver) {
    const name = segmentName(id);
    await persist(() => files.rename(join(dir, name), join(aside, name)));
  }
  await flushDirectory(files, aside);
  await flushDirectory(files, dir);
}
