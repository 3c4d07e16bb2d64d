import type { CollectedFrames } from "./collect-frames.ts";
import { hashId, hashKey, type IdHash } from "./hash-id.ts";
import { segmentKey, type Damage, type LogSegment } from "./log-segment.ts";
import { TaskIndex, type TaskEntry } from "./task-index.ts";

/** A task that cannot be served. */
export interface HurtTask {
  /** Absent when only the hash of the id is known. */
  readonly taskId: string | undefined;
  readonly damage: Damage;
}

/** What the damage of a log means for its tasks. */
export interface Verdict {
  readonly hurt: HurtTask[];
  /** Damage that no task could be named for. */
  readonly nobodys: Damage[];
  /** Writes that never ended, and that nobody was told about. */
  readonly ignored: Set<Damage>;
  /** Damaged writes that a later one of their task, or its deletion, replaced: nobody misses them. */
  readonly superseded: Damage[];
  /** Tasks with an ignored write in front of whole frames: a later opening could not tell it from damage. */
  readonly unended: {
    readonly taskId: string | undefined;
    readonly idHash: IdHash;
    readonly damage: Damage;
  }[];
}

/**
 * Makes the index of the newest frame of each task, and decides whom damage hurts. A frame that was written
 * later heals a damaged one of the same task. Where the damaged one is the newest, the task is corrupt: an
 * older state is never served as the truth. The one exception is a torn write at the end of a log that was
 * not closed, beyond everything known to be flushed: it was never acknowledged.
 */
export function judgeDamage(replay: CollectedFrames): { index: TaskIndex; verdict: Verdict } {
  const verdict: Verdict = { hurt: [], nobodys: [], ignored: new Set(), superseded: [], unended: [] };
  // Tombstones heal as well: the hashes are taken before they go.
  const byHash =
    replay.damages.length === 0
      ? undefined
      : new Map([...replay.newest].map((named) => [hashKey(hashId(named[0])), named]));
  for (const taskId of replay.tombstones.keys()) replay.newest.delete(taskId);
  const index = new TaskIndex(replay.newest);
  if (byHash !== undefined) {
    for (const damage of replay.damages) {
      if (damage.idHash === undefined) judgeNobodys(damage, replay, verdict);
      else judge(damage, damage.idHash, byHash.get(hashKey(damage.idHash)), { replay, index, verdict });
    }
    hurtByBlobs(replay, index);
  }
  for (const [taskId, { damage }] of index.named())
    if (damage !== null) verdict.hurt.push({ taskId, damage });
  for (const [, { damage }] of index.unnamed())
    if (damage !== null) verdict.hurt.push({ taskId: undefined, damage });
  return { index, verdict };
}

interface Case {
  readonly replay: CollectedFrames;
  readonly index: TaskIndex;
  readonly verdict: Verdict;
}

function judge(
  damage: Damage,
  idHash: IdHash,
  named: readonly [string, TaskEntry] | undefined,
  { replay, index, verdict }: Case,
): void {
  const newest = named?.[1];
  if (
    isVoid(damage, replay.voids.get(hashKey(idHash))) ||
    (named !== undefined && isHealed(damage, named, replay))
  ) {
    verdict.superseded.push(damage);
    return;
  }
  if (wasNeverAcknowledged(damage, replay)) {
    verdict.ignored.add(damage);
    const taskId = named !== undefined && index.get(named[0]) === newest ? named[0] : undefined;
    if (damage.offset < replay.framesEnd) verdict.unended.push({ taskId, idHash, damage });
    return;
  }
  const { segment, offset, bytes, bornAtMs, ttlMs } = damage;
  const entry: TaskEntry = {
    segment,
    offset,
    bytes,
    sequence: damage.sequence ?? newest?.sequence ?? 0,
    version: newest?.version ?? 0,
    bornAtMs,
    ttlMs,
    blobs: null,
    sinceSegment: Math.min(segmentKey(segment), newest?.sinceSegment ?? Infinity),
    damage,
  };
  const taskId = named?.[0] ?? damage.taskId;
  if (taskId === undefined) index.setUnnamed(idHash, entry);
  else index.set(taskId, entry);
}

/** By sequence where both are known; else by place: in one task, what lies later was written later. */
function isHealed(
  damage: Damage,
  [taskId, newest]: readonly [string, TaskEntry],
  replay: CollectedFrames,
): boolean {
  if (damage.sequence !== undefined) return newest.sequence >= damage.sequence;
  // A copied tombstone may lie behind a later birth of the same id.
  if (replay.tombstones.get(taskId) === "copy") return false;
  const places = segmentKey(newest.segment) - segmentKey(damage.segment);
  return places > 0 || (places === 0 && newest.offset > damage.offset);
}

/** The deletion of a task whose id is unknown, by hash. */
function isVoid({ sequence }: Damage, voidedAt: number | undefined): boolean {
  return voidedAt !== undefined && (sequence === undefined || sequence <= voidedAt);
}

function wasNeverAcknowledged(
  { segment, sequence, torn, isMarker }: Damage,
  replay: CollectedFrames,
): boolean {
  if (segment !== replay.tail || !torn || isMarker) return false;
  return sequence === undefined || sequence > replay.durableSequence;
}

function judgeNobodys(damage: Damage, replay: CollectedFrames, verdict: Verdict): void {
  const isEnd = damage.offset >= replay.framesEnd;
  if (isEnd && wasNeverAcknowledged(damage, replay)) verdict.ignored.add(damage);
  else verdict.nobodys.push(damage);
}

/** A whole frame may refer to a large field that lies in a damaged one. */
function hurtByBlobs({ damages }: CollectedFrames, index: TaskIndex): void {
  const bySegment = new Map<LogSegment, Damage[]>();
  for (const damage of damages)
    bySegment.set(damage.segment, [...(bySegment.get(damage.segment) ?? []), damage]);
  for (const [taskId, entry] of index.named()) {
    const damage = entry.damage ?? overlapping(entry, bySegment);
    if (damage !== null && damage !== entry.damage) index.set(taskId, { ...entry, damage });
  }
}

function overlapping({ blobs }: TaskEntry, bySegment: Map<LogSegment, Damage[]>): Damage | null {
  for (const blob of blobs ?? []) {
    const hit = bySegment
      .get(blob.segment)
      ?.find(({ offset, bytes }) => offset < blob.offset + blob.bytes && blob.offset < offset + bytes);
    if (hit !== undefined) return hit;
  }
  return null;
}
