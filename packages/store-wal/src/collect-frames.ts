import { join } from "node:path";
import { decodeNames, type BlobEntry } from "./decode-frame.ts";
import type { FileLayer } from "./file-layer.ts";
import {
  FLAG_COPY,
  FLAG_OPEN,
  FLAG_SETTLING,
  frameKinds,
  NAMING_DISTANCE,
  type FrameHeader,
} from "./frame-format.ts";
import { hashId, hashKey, isSameHash } from "./hash-id.ts";
import { segmentKey, type BlobRef, type Damage, type LogSegment } from "./log-segment.ts";
import { scanSegment, type ScannedFrame, type ScanOptions } from "./scan-segment.ts";
import { FRAMES_START } from "./segment-header.ts";
import type { TaskEntry } from "./task-index.ts";
import { decodeTombstone } from "./tombstone.ts";

/** How far the frames of a segment go. */
export interface ScannedEnd {
  readonly segment: LogSegment;
  /** Where the last whole frame ends. */
  readonly framesEnd: number;
  /** Everything in front of it was flushed: a frame that was written later says so. */
  readonly flushedEnd: number;
  /** False where an opening was cut off before it had settled what lies in front of it, and any store could write. */
  readonly hasWrites: boolean;
}

/** The deletion of a task. */
export interface Deletion {
  /** Key of the last segment in which frames of the task may lie. */
  readonly until: number;
  /** True for a copy, whose place says nothing about when the task was deleted. */
  readonly isCopy: boolean;
}

/** The deletion of a task whose id is unknown. */
export interface Void extends Deletion {
  readonly segment: LogSegment;
  readonly offset: number;
  readonly sequence: number;
}

/** What a scan of the log collects, before damage is judged. */
export class CollectedFrames {
  /** The newest frame of each task, tombstones included. */
  readonly newest: Map<string, TaskEntry> = new Map();
  /** Tasks whose newest frame is a tombstone. */
  readonly tombstones: Map<string, Deletion> = new Map();
  /** Deletions of tasks whose id is unknown, by hash of the id. */
  readonly voids: Map<string, Void[]> = new Map();
  /** Tasks whose newest frame says that they are open. */
  readonly openTasks: Set<string> = new Set();
  readonly damages: Damage[] = [];
  readonly segments: Map<number, LogSegment>;
  /** The segment whose end nobody vouches for, and what its frames say about that end. */
  tail: ScannedEnd | undefined;
  /** The segments whose last batch may not have been flushed, with nobody to be told of it: the tail, and those that the openings since did not settle. */
  readonly unsettled: Map<LogSegment, ScannedEnd> = new Map();
  highestSequence = 0;

  constructor(segments: Map<number, LogSegment>) {
    this.segments = segments;
  }

  sawSequence(sequence: number): void {
    this.highestSequence = Math.max(this.highestSequence, sequence);
  }

  async scan(files: FileLayer, dir: string, segment: LogSegment, options: ScanOptions): Promise<ScannedEnd> {
    this.sawSequence(segment.header.firstSequence - 1);
    // Gaps that say at most who was their last: frames behind them name the others.
    let gaps: Damage[] = [];
    const end = { segment, framesEnd: FRAMES_START, flushedEnd: FRAMES_START, hasWrites: false };
    const sawHeader = ({ flushedEnd, sequence, flags }: FrameHeader): void => {
      end.flushedEnd = Math.max(end.flushedEnd, flushedEnd);
      end.hasWrites ||= (flags & FLAG_SETTLING) === 0;
      this.sawSequence(sequence);
    };
    const file = await files.open(join(dir, segment.name), "r");
    try {
      await scanSegment(file, segment, options, {
        frame: (frame) => {
          sawHeader(frame.header);
          end.framesEnd = frame.offset + frame.bytes;
          if (gaps.length > 0) gaps = this.#nameGaps(gaps, frame);
          this.#keep(segment, frame);
        },
        damage: (damage, header) => {
          if (header !== undefined) sawHeader(header);
          if (damage.sequence === undefined) gaps.push(damage);
          this.damages.push(damage);
          this.sawSequence(damage.sequence ?? 0);
        },
      });
      return end;
    } finally {
      await file.close();
    }
  }

  /** Adds whose frames lay in a gap, each from its own beginning. Returns the gaps that may have more names. */
  #nameGaps(gaps: readonly Damage[], { source, at, offset, header }: ScannedFrame): Damage[] {
    for (const name of decodeNames(source, at, offset, header)) {
      const gap = gaps.find((one) => name.offset >= one.offset && name.offset < one.offset + one.bytes);
      if (gap === undefined || (gap.idHash !== undefined && isSameHash(gap.idHash, name.idHash))) continue;
      const bytes = gap.offset + gap.bytes - name.offset;
      // With the name of its first frame, a gap that was nobody's is wholly named.
      if (gap.idHash === undefined && name.offset === gap.offset)
        this.damages.splice(this.damages.indexOf(gap), 1);
      this.damages.push({ ...gap, offset: name.offset, bytes, idHash: name.idHash, taskId: undefined });
    }
    return gaps.filter((gap) => gap.offset + gap.bytes + NAMING_DISTANCE > offset);
  }

  #keep(segment: LogSegment, frame: ScannedFrame): void {
    const { header, meta, offset, bytes, source } = frame;
    if (header.kind === frameKinds.tombstone) segment.tombstones.push({ offset, bytes });
    if (meta.taskId === "" && !isSameHash(hashId(""), header.idHash)) {
      this.#keepVoid(segment, frame);
      return;
    }
    const before = this.newest.get(meta.taskId);
    const isCopy = isCopied(header);
    // The highest sequence wins in any order of files; on a tie the copy, which comes later.
    if (before !== undefined && before.sequence > header.sequence) return;
    if (before?.sequence === header.sequence && !isCopy) return;
    const isMarker = header.kind === frameKinds.marker;
    const isTombstone = header.kind === frameKinds.tombstone;
    const blobs = this.#outside(meta.blobs, segment, offset);
    const lost = blobs?.includes(undefined) === true;
    const range = isTombstone ? decodeTombstone(source, meta) : undefined;
    const sinceSegment = range?.since ?? segmentKey(segment);
    this.newest.set(meta.taskId, {
      segment,
      offset,
      bytes,
      sequence: header.sequence,
      version: header.version,
      bornAtMs: header.bornAtMs,
      ttlMs: header.ttlMs,
      blobs: blobs?.filter((blob) => blob !== undefined) ?? null,
      sinceSegment: Math.min(sinceSegment, before?.sinceSegment ?? sinceSegment),
      damage:
        isMarker || lost
          ? { ...damageOf(segment, offset, bytes, header), taskId: meta.taskId, isMarker }
          : null,
    });
    if ((header.flags & FLAG_OPEN) === 0) this.openTasks.delete(meta.taskId);
    else this.openTasks.add(meta.taskId);
    if (range !== undefined) this.tombstones.set(meta.taskId, { until: range.until, isCopy });
    else if (before !== undefined) this.tombstones.delete(meta.taskId);
  }

  /** The deletion of a task that is known only by the hash of its id. */
  #keepVoid(segment: LogSegment, { header, meta, offset, source }: ScannedFrame): void {
    if (header.kind !== frameKinds.tombstone) return;
    const key = hashKey(header.idHash);
    const { sequence } = header;
    const { until } = decodeTombstone(source, meta);
    const found = { segment, offset, sequence, until, isCopy: isCopied(header) };
    this.voids.set(key, [...(this.voids.get(key) ?? []), found]);
  }

  #outside(
    entries: readonly BlobEntry[],
    segment: LogSegment,
    offset: number,
  ): (BlobRef | undefined)[] | null {
    const outside = entries.filter(
      (entry) => segmentKey(entry) !== segmentKey(segment) || entry.offset < offset,
    );
    if (outside.length === 0) return null;
    return outside.map((entry) => {
      const home = this.segments.get(segmentKey(entry));
      return home && { segment: home, offset: entry.offset, bytes: entry.bytes, checksum: entry.checksum };
    });
  }
}

function isCopied({ flags }: FrameHeader): boolean {
  return (flags & FLAG_COPY) !== 0;
}

function damageOf(
  segment: LogSegment,
  offset: number,
  bytes: number,
  header: ScannedFrame["header"],
): Damage {
  const { idHash, sequence, bornAtMs, ttlMs } = header;
  const taskId = undefined;
  return { segment, offset, bytes, idHash, taskId, sequence, bornAtMs, ttlMs, torn: false, isMarker: false };
}
