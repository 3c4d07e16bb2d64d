import { setOwn } from "./set-own.ts";
import type { TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";

/**
 * The record after `patch`, one version later (C8, C11): the one meaning of a patch, shared by every store
 * that keeps records as objects. Neither argument is changed; the new record is frozen.
 *
 * @throws TypeError when the patch names `taskId` or `version`, which belong to the store.
 */
export function applyTaskPatch(record: TaskRecord, patch: TaskPatch): TaskRecord {
  for (const field of ["taskId", "version"]) {
    if (Object.hasOwn(patch, field)) {
      throw new TypeError(`A patch cannot set ${field}: it belongs to the store.`);
    }
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
