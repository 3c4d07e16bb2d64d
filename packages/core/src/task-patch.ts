import type { TaskRecord } from "./task-record.ts";
import type { TaskPatch } from "./task-store.ts";

/**
 * The record after `patch`, one version later (C8, C11): the one meaning of a patch, shared by every store
 * that keeps records as objects. Neither argument is changed; the new record is frozen.
 *
 * @throws TypeError when the patch names `taskId` or `version`, which belong to the store.
 */
export function applyTaskPatch(record: TaskRecord, patch: TaskPatch): TaskRecord {
  const next: Record<string, unknown> = { ...record };
  for (const [field, value] of Object.entries(patch)) {
    if (field === "taskId" || field === "version") {
      throw new TypeError(`A patch cannot set ${field}: it belongs to the store.`);
    }
    if (value === undefined) delete next[field];
    else next[field] = value;
  }
  next["version"] = record.version + 1;
  return Object.freeze(next) as TaskRecord;
}
