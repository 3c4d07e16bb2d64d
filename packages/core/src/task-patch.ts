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
  // Built anew, field by field: deleting from a copy would turn it into a slow dictionary.
  const next: Record<string, unknown> = {};
  for (const field of Object.keys(record)) {
    const value: unknown = (Object.hasOwn(patch, field) ? patch : record)[field as never];
    if (value !== undefined) setOwn(next, field, value);
  }
  for (const field of Object.keys(patch)) {
    const value: unknown = patch[field as keyof TaskPatch];
    if (value !== undefined && !Object.hasOwn(record, field)) setOwn(next, field, value);
  }
  next["version"] = record.version + 1;
  return Object.freeze(next) as TaskRecord;
}

const fixedFields = ["taskId", "version", "createdAt"] as const;
