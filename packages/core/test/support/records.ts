import type { TaskRecord } from "../../src/index.ts";

/** A record with the required fields alone. */
export function bareRecord(fields: Partial<TaskRecord> = {}): TaskRecord {
  return {
    taskId: "task-1",
    version: 7,
    status: "working",
    createdAt: "2026-07-28T00:00:00.000Z",
    lastUpdatedAt: "2026-07-28T00:00:01.000Z",
    ttlMs: null,
    retentionMs: null,
    attempt: 1,
    crashes: 0,
    ...fields,
  };
}

/** A record in which every field has a value: what nothing may leak from. */
export function fullRecord(fields: Partial<TaskRecord> = {}): Required<TaskRecord> {
  const full: Required<TaskRecord> = {
    ...(bareRecord() as Required<TaskRecord>),
    statusMessage: "Page 3 of 9",
    ttlMs: 86_400_000,
    retentionMs: 86_400_000,
    pollIntervalMs: 1_000,
    result: { content: [], isError: false },
    error: { code: -32_603, message: "Broken", data: { reason: "broken" } },
    scope: "tenant-1/user-7",
    work: { tool: "render", arguments: { secret: 1 }, client: { era: "2026-07-28", capabilities: {} } },
    inputs: {
      asked: { fingerprint: "f", request: { method: "roots/list" }, state: "open", attempt: 1 },
      done: {
        fingerprint: "g",
        request: { method: "roots/list" },
        answer: { roots: [] },
        state: "answered",
        attempt: 1,
      },
      gone: { fingerprint: "h", request: { method: "roots/list" }, state: "withdrawn", attempt: 1 },
      old: { fingerprint: "i", request: { method: "roots/list" }, state: "superseded", attempt: 1 },
    },
    checkpoint: { value: { page: 3 }, asked: { asked: 1 } },
    progress: { message: "Page", done: 3, total: 9 },
    cancelRequestedAt: "2026-07-28T00:00:00.500Z",
    lease: { owner: "owner-1", token: "token-1", durationMs: 30_000 },
    finishedBy: "token-0",
    idempotency: { fingerprint: "k" },
    kind: "transfer",
    data: { offset: 12 },
  };
  return { ...full, ...fields };
}
