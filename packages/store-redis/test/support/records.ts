import type { JsonObject, TaskRecord } from "@longjobs/core";

/** A working task with every required field. */
export function record(taskId: string, fields: Partial<TaskRecord> = {}): TaskRecord {
  return {
    taskId,
    version: 1,
    status: "working",
    createdAt: "2026-01-01T00:00:00.000Z",
    lastUpdatedAt: "2026-01-01T00:00:00.000Z",
    ttlMs: null,
    attempt: 1,
    crashes: 0,
    retentionMs: null,
    ...fields,
  };
}

/** A result whose text is about as long as asked. */
export function bigResult(bytes: number, letter = "x"): JsonObject {
  return { content: [{ type: "text", text: letter.repeat(bytes) }] };
}
