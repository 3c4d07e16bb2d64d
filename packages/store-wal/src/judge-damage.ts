import type { CollectedFrames, Void } from "./collect-frames.ts";
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
  /** Ignored writes in front of the end of the log: a later opening could not tell them from damage. */
  readonly unended: UnendedWrite[];
}

/** A write that never ended, whose task can be served. */
export interface UnendedWrite {
  /** The task whose state goes on to count; absent when there is none. */
  readonly taskId: string | undefined;
  readonly idHash: IdHash;
  readonly damage: Damage;
}

/** What {@link judgeDamage} makes of a log. */
export interface JudgedLog {
  readonly index: TaskIndex;
  readonly verdict: Verdict;
  /** Where the segment ends whose end nobody vouched for: behind its last whole frame and damage that counts. */
  readonly tailEnd: number;
}

/**
 * Makes the index of the newest frame of each task, and decides whom damage hurts. A frame that was written
 * later heals a damaged one of the same task. Where the damaged one is the newest, the task is corrupt: an
 * older state is never served as the truth. The one exception is a torn write at the end of a log that was
 * not closed, behind everything known to be flushed: it was never acknowledged.
 */
export function judgeDamage(replay: CollectedFrames): JudgedLog {
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
  const tailEnd = endOfTail(replay, verdict);
  for (const damage of verdict.ignored) {
    if (damage.segment === replay.tail?.segment && damage.offset >= tailEnd) continue;
    const unended = findUnended(damage, damage.idHash, byHash, index);
    if (unended !== undefined) verdict.unended.push(unended);
  }
  return { index, verdict, tailEnd };
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
  const { segment, offset, bytes, bornAtMs, ttlMs } = damage;
  if (replay.voids.get(hashKey(idHash))?.some((deletion) => isVoid(damage, deletion)) === true) {
    verdict.superseded.push(damage);
    return;
  }
  if (named !== undefined && isHealed(damage, named, replay)) {
    verdict.superseded.push(damage);
    reachBack(named[0], segment, index);
    return;
  }
  if (wasNeverAcknowledged(damage, replay)) {
    verdict.ignored.add(damage);
    return;
  }
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
  // A copied tombstone may lie behind a later birth of the same id: what it deleted lies in its segments.
  const deletion = replay.tombstones.get(taskId);
  if (deletion?.isCopy === true) return segmentKey(damage.segment) < deletion.until;
  const places = segmentKey(newest.segment) - segmentKey(damage.segment);
  return places > 0 || (places === 0 && newest.offset > damage.offset);
}

/** A deletion must outlive the damaged frames of its task as well: they would bring it back as damaged. */
function reachBack(taskId: string, segment: LogSegment, index: TaskIndex): void {
  const entry = index.get(taskId);
  const key = segmentKey(segment);
  if (entry !== undefined && key < entry.sinceSegment) index.set(taskId, { ...entry, sinceSegment: key });
}

/** Whether a task was deleted by its hash after the damaged write. A copy says nothing by its place. */
function isVoid({ segment, offset, sequence }: Damage, deletion: Void): boolean {
  if (sequence !== undefined) return sequence <= deletion.sequence;
  const key = segmentKey(segment);
  if (key > deletion.until) return false;
  const places = segmentKey(deletion.segment) - key;
  return deletion.isCopy || places > 0 || (places === 0 && deletion.offset > offset);
}

function wasNeverAcknowledged(
  { segment, offset, torn, isMarker }: Damage,
  { unsettled }: CollectedFrames,
): boolean {
  const end = unsettled.get(segment);
  return torn && !isMarker && end !== undefined && offset >= end.flushedEnd;
}

function judgeNobodys(damage: Damage, replay: CollectedFrames, verdict: Verdict): void {
  const isEnd = damage.offset >= (replay.unsettled.get(damage.segment)?.framesEnd ?? 0);
  if (isEnd && wasNeverAcknowledged(damage, replay)) verdict.ignored.add(damage);
  else verdict.nobodys.push(damage);
}

/** Damage that nobody misses is no part of the log: only what counts may keep the end behind it. */
function endOfTail({ tail }: CollectedFrames, { hurt, nobodys }: Verdict): number {
  let end = tail?.framesEnd ?? 0;
  const reach = ({ segment, offset, bytes }: Damage): void => {
    if (segment === tail?.segment) end = Math.max(end, offset + bytes);
  };
  for (const { damage } of hurt) reach(damage);
  for (const damage of nobodys) reach(damage);
  return end;
}

/** What a later opening must be told about an ignored write; nothing, where its task is refused anyway. */
function findUnended(
  damage: Damage,
  idHash: IdHash | undefined,
  byHash: ReadonlyMap<string, readonly [string, TaskEntry]> | undefined,
  index: TaskIndex,
): UnendedWrite | undefined {
  if (idHash === undefined) return undefined;
  const taskId = byHash?.get(hashKey(idHash))?.[0] ?? damage.taskId;
  const entry = taskId === undefined ? index.getUnnamed(idHash) : index.get(taskId);
  if (entry === undefined) return { taskId: undefined, idHash, damage };
  return entry.damage === null ? { taskId, idHash, damage } : undefined;
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
