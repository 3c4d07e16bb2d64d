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

/** A result whose text is about as long as asked, and does not compress. */
export function bigResult(bytes: number): JsonObject {
  const words = Array.from({ length: Math.ceil(bytes / 36) }, () => crypto.randomUUID());
  return { content: [{ type: "text", text: words.join("") }] };
}

/** The code of the error that a promise rejects with, or its name; `undefined` when it resolves. */
export async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name;
  }
}
