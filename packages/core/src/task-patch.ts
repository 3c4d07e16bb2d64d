import { setOwn } from "./set-own.ts";
import type { TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";

/**
 * The record after `patch`, one version later (C8, C11): the one meaning of a patch, shared by every store
 * that keeps records as objects. Neither argument is changed; the new record is frozen.
 *
 * @throws TypeError when the patch names `taskId`, `version` or `createdAt`, which no patch changes.
 */
export function applyTaskPatch(record: TaskRecord, patch: TaskPatch): TaskRecord {
  for (const field of fixedFields) {
    if (Object.hasOwn(patch, field)) throw new TypeError(`A patch cannot set ${field}.`);
  }
  // In one step each: copying field by field takes several times as long.
  const next: Record<string, unknown> = { ...record, ...patch };
  next["version"] = record.version + 1;
  const deletes = Object.values(patch).includes(undefined);
  return Object.freeze(deletes ? withoutUndefined(next) : next) as TaskRecord;
}

/** Built anew: deleting from an object would turn it into a slow dictionary. */
function withoutUndefined(fields: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value !== undefined) setOwn(kept, name, value);
  }
  return kept;
}

const fixedFields = ["taskId", "version", "createdAt"] as const;
