import { FRAMES_START } from "./segment-header.ts";
import { hashId, hashKey } from "./hash-id.ts";
import type { BlobRef, Damage } from "./log-segment.ts";
import type { QuarantineListing } from "./quarantine-listing.ts";
import type { TaskEntry } from "./task-index.ts";

/** What damaged bytes were, and what follows from it. */
export const damageKinds = {
  task: "the newest write of the task: the task is refused",
  field: "a large field that the task still refers to: the task is refused",
  marker: "found damaged earlier, bytes removed by compaction since: the task is refused",
  superseded: "an earlier write that a later one replaced: no task misses it",
  header: "one of the two headers of the file: the other one serves",
  file: "both headers of the file: nothing in it can be read",
  missing: "the end of the file, which is missing: nobody can say whose it was",
  unknown: "a part of the log that no task could be found for",
} as const;

/** One damaged place, as the command prints it. Instants are ISO 8601. */
export interface DamageReport {
  readonly kind: keyof typeof damageKinds;
  /** `null` where the id itself is lost. */
  readonly taskId: string | null;
  /** The hash of the id, as an opening reports it; `null` where not even that is known. */
  readonly idHash: string | null;
  /** The last version that is known, which is not served; `null` where there is none. */
  readonly knownVersion: number | null;
  readonly sequence: number | null;
  readonly bornAt: string | null;
  /** `null` for never, or unknown. */
  readonly expiresAt: string | null;
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
  /** The file with a copy of the bytes; `null` before the log was opened with this damage. */
  readonly quarantine: string | null;
}

/** Why a task is refused. `entry.damage` must be set, or `place` given where reading found out. */
export function reportTask(
  taskId: string | undefined,
  entry: TaskEntry,
  place: Pick<BlobRef, "segment" | "offset" | "bytes"> | undefined,
  quarantine: QuarantineListing,
): Promise<DamageReport> {
  const { damage, version, sequence, bornAtMs, ttlMs, segment, offset, bytes } = entry;
  const found: Damage = {
    idHash: taskId === undefined ? damage?.idHash : hashId(taskId),
    sequence: damage?.sequence ?? sequence,
    torn: false,
    isMarker: damage?.isMarker ?? false,
    taskId,
    bornAtMs,
    ttlMs,
    ...(place ?? damage ?? { segment, offset, bytes }),
  };
  // A damaged frame is not asked for its large fields: an entry that has some was whole itself.
  const isField =
    place === undefined ? entry.blobs !== null : place.offset !== offset || place.segment !== segment;
  const kind = found.isMarker ? "marker" : isField ? "field" : "task";
  return report(kind, { ...found, taskId }, version > 0 ? version : null, quarantine);
}

/** A damaged write that nobody misses. */
export function reportSuperseded(damage: Damage, quarantine: QuarantineListing): Promise<DamageReport> {
  return report("superseded", damage, null, quarantine);
}

/** Damage that no task could be named for. */
export function reportNobodys(
  damage: Damage,
  fileBytes: number,
  quarantine: QuarantineListing,
): Promise<DamageReport> {
  const kind =
    damage.offset >= fileBytes
      ? "missing"
      : damage.offset > 0
        ? "unknown"
        : damage.bytes === FRAMES_START
          ? "header"
          : "file";
  return report(kind, damage, null, quarantine);
}

async function report(
  kind: DamageReport["kind"],
  damage: Damage,
  knownVersion: number | null,
  quarantine: QuarantineListing,
): Promise<DamageReport> {
  const { taskId = null, idHash, sequence = null, bornAtMs, ttlMs, segment, offset, bytes } = damage;
  const kept =
    quarantine.at(damage) ?? (kind === "marker" && idHash ? await quarantine.ofTask(idHash) : undefined);
  return {
    kind,
    taskId,
    idHash: idHash === undefined ? null : hashKey(idHash),
    knownVersion,
    sequence,
    bornAt: instant(bornAtMs),
    expiresAt: ttlMs === null ? null : instant(bornAtMs + ttlMs),
    file: segment.name,
    offset,
    bytes,
    quarantine: kept ?? null,
  };
}

/** ISO 8601; `null` where there is no such instant. */
export function instant(epochMs: number): string | null {
  return Math.abs(epochMs) <= 8.64e15 ? new Date(epochMs).toISOString() : null;
}
