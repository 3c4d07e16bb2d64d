import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { duration } from "./lifecycle-options.ts";
import { normalizeJsonObject } from "./normalize-json.ts";
import { isTaskId } from "./task-id.ts";
import type { TaskRecord, TaskWork } from "./task-record.ts";
import { initialTtlMs } from "./task-retention.ts";

/** What a new task is made of. Everything is optional. */
export interface CreateTaskOptions {
  /** Whose task it is; compared whole. Absent: only calls without a scope may see it. */
  readonly scope?: string;
  /** What a later process needs to run the handler again, and what the client declared. */
  readonly work?: TaskWork;
  readonly statusMessage?: string;
  /** Whole milliseconds; `null` suggests none. @default the engine's `pollIntervalMs` */
  readonly pollIntervalMs?: number | null;
  /** Whole milliseconds; `null` keeps a finished task for ever. @default the engine's `retentionMs` */
  readonly retentionMs?: number | null;
  /** The least `ttlMs` of the task, from its creation, in whole milliseconds; `null` means it never expires. */
  readonly ttlMs?: number | null;
}

/** What a task is told from others by. */
export type TaskIdentity = Pick<TaskRecord, "taskId" | "idempotency">;

/**
 * The record of a new task as its creation will write it: working, at a random version, with the lease of its
 * first attempt.
 *
 * @param identity - Given for a task whose id follows from a key. @default a fresh random id
 * @throws TypeError, RangeError for options; `invalid_json` for work that JSON cannot hold.
 */
export function draftTask(
  options: CreateTaskOptions,
  engine: ResolvedLifecycleOptions,
  owner: string,
  identity: TaskIdentity = { taskId: engine.randomId() },
): TaskRecord {
  const { leaseMs, random, randomId } = engine;
  const { taskId } = identity;
  if (!isTaskId(taskId)) throw new TypeError("randomId must give ids of 1 to 128 letters, digits, - and _.");
  const retentionMs = retention(options.retentionMs, engine);
  const nowIso = new Date(engine.now()).toISOString();
  return {
    ...identity,
    // A random start: a task made anew under the same id never meets the version of an old writer (C12).
    version: Math.floor(random() * 2 ** 31),
    status: "working",
    createdAt: nowIso,
    lastUpdatedAt: nowIso,
    ttlMs: initialTtlMs(retentionMs, leaseMs, leastTtl(options.ttlMs)),
    retentionMs,
    attempt: 1,
    crashes: 0,
    lease: { owner, token: randomId(), durationMs: leaseMs },
    ...optionalFields(options, engine),
  };
}

type OptionalFields = Partial<Pick<TaskRecord, "statusMessage" | "pollIntervalMs" | "scope" | "work">>;

function optionalFields(options: CreateTaskOptions, engine: ResolvedLifecycleOptions): OptionalFields {
  const { scope, statusMessage, work } = options;
  if (statusMessage !== undefined && typeof statusMessage !== "string") {
    throw new TypeError("statusMessage must be a string.");
  }
  if (scope !== undefined && (typeof scope !== "string" || scope === "")) {
    throw new TypeError("scope must be a string that is not empty.");
  }
  if (work !== undefined && typeof (work as Partial<TaskWork> | null)?.tool !== "string") {
    throw new TypeError("work must name its tool.");
  }
  const pollIntervalMs = duration("pollIntervalMs", options.pollIntervalMs, engine.pollIntervalMs, {
    nullable: true,
  });
  return {
    ...(statusMessage === undefined ? {} : { statusMessage }),
    ...(pollIntervalMs === null ? {} : { pollIntervalMs }),
    ...(scope === undefined ? {} : { scope }),
    ...(work === undefined
      ? {}
      : { work: normalizeJsonObject(work, "work", engine.jsonLimits) as unknown as TaskWork }),
  };
}

function leastTtl(ttlMs: number | null | undefined): number | null | undefined {
  return ttlMs === undefined ? undefined : duration("ttlMs", ttlMs, null, { nullable: true });
}

function retention(wished: number | null | undefined, engine: ResolvedLifecycleOptions): number | null {
  const asked = duration("retentionMs", wished, engine.retentionMs, { nullable: true });
  return engine.maxRetentionMs === null ? asked : Math.min(asked ?? Infinity, engine.maxRetentionMs);
}
