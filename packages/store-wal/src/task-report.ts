import type { TaskRecord } from "@longjobs/core";
import { isExpired } from "@longjobs/core";
import { instant, type DamageReport } from "./damage-report.ts";
import type { ExaminedTask } from "./examine-log.ts";

/** A task without what it is about: names and sizes of its payloads only. Instants are ISO 8601. */
export interface TaskReport {
  readonly taskId: string;
  /** `null` for a damaged task. */
  readonly status: string | null;
  readonly version: number;
  readonly createdAt: string | null;
  readonly lastUpdatedAt: string | null;
  /** When the store took it in, by its own clock: its age counts from here. */
  readonly bornAt: string | null;
  /** `null` for never. */
  readonly expiresAt: string | null;
  readonly isExpired: boolean;
  /** Bytes of JSON text of each further field. */
  readonly payloads: Readonly<Record<string, number>>;
  readonly damage: DamageReport["kind"] | null;
  /** The whole record, where payloads were asked for. */
  readonly record?: TaskRecord;
}

/** Fields that say how a task stands, and nothing of what it is about. */
const shown = new Set([
  "taskId",
  "version",
  "status",
  "createdAt",
  "lastUpdatedAt",
  "ttlMs",
  "retentionMs",
  "pollIntervalMs",
  "attempt",
  "crashes",
]);

export function reportOfTask(
  { taskId, entry, task, damage }: ExaminedTask,
  { nowMs, withPayloads }: { readonly nowMs: number; readonly withPayloads: boolean },
): TaskReport {
  const { version, bornAtMs, ttlMs } = entry;
  const record = task?.record;
  const sizes = (task?.fields ?? [])
    .filter(({ name }) => !shown.has(name))
    .map(({ name, bytes }) => [name, bytes]);
  return {
    taskId,
    status: record?.status ?? null,
    version,
    createdAt: record?.createdAt ?? null,
    lastUpdatedAt: record?.lastUpdatedAt ?? null,
    bornAt: instant(bornAtMs),
    expiresAt: ttlMs === null ? null : instant(bornAtMs + ttlMs),
    isExpired: isExpired(bornAtMs, ttlMs, nowMs),
    payloads: Object.fromEntries(sizes) as Record<string, number>,
    damage: damage?.kind ?? null,
    ...(withPayloads && record !== undefined ? { record } : {}),
  };
}
