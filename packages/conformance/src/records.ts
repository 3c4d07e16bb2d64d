import type { JsonObject, JsonValue, TaskRecord, TaskStatus } from "@longjobs/core";

/** Every status a record can have. */
export const statuses: readonly TaskStatus[] = [
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
];

/** A record with the required fields alone. Its TTL is `null`: it stays for the whole check. */
export function minimalRecord(fields: Partial<TaskRecord> = {}): TaskRecord {
  const now = new Date().toISOString();
  return {
    taskId: "task-1",
    version: 1_234_567,
    status: "working",
    createdAt: now,
    lastUpdatedAt: now,
    ttlMs: null,
    attempt: 1,
    crashes: 0,
    retentionMs: null,
    ...fields,
  };
}

/** A record in which every field of the contract has a value. */
export function fullRecord(fields: Partial<TaskRecord> = {}): TaskRecord {
  return {
    ...minimalRecord(),
    statusMessage: "Rendering page 3 of 9",
    pollIntervalMs: 1_000,
    result: { content: [{ type: "text", text: "done" }], isError: false },
    error: { code: -32_603, message: "Internal error", data: { reason: "interrupted", retryable: true } },
    scope: "tenant-1/user-7",
    work: {
      tool: "render",
      arguments: { pages: [1, 2, 3], options: { colour: true } },
      client: { era: "2026-07-28", capabilities: { elicitation: {} } },
    },
    inputs: {
      approve: {
        fingerprint: "a".repeat(64),
        request: {
          method: "elicitation/create",
          params: { message: "Go on?", requestedSchema: { type: "object" } },
        },
        answer: { action: "accept", content: { ok: true } },
        state: "answered",
        attempt: 1,
      },
    },
    checkpoint: { value: { page: 3, seen: ["a", "b"] }, asked: { approve: 1 } },
    progress: { message: "page 3", done: 3, total: 9 },
    cancelRequestedAt: "2026-01-02T03:04:05.678Z",
    lease: { owner: "instance-1", token: "token-1", durationMs: 30_000 },
    finishedBy: "token-0",
    idempotency: { fingerprint: "b".repeat(64) },
    kind: "transfer",
    data: { offset: 131_072, name: "report.pdf" },
    ...fields,
  };
}

/** A terminal record with its result. */
export function completedRecord(fields: Partial<TaskRecord> = {}): TaskRecord {
  return minimalRecord({ status: "completed", result: { content: [] }, finishedBy: "token-1", ...fields });
}

/** A record after a patch, as the contract defines it; the suite's own reading, independent of any store. */
export function patched(record: TaskRecord, fields: Partial<TaskRecord>): TaskRecord {
  return { ...record, ...fields, version: record.version + 1 };
}

/** A result of about this many bytes of JSON text. */
export function resultOfBytes(bytes: number): JsonObject {
  return { text: "x".repeat(Math.max(0, Math.floor(bytes))) };
}

/** An array nested this deep. */
export function nested(levels: number): JsonValue {
  let value: JsonValue = "bottom";
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { in: value };
  return value;
}
