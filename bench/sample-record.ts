import type { TaskRecord } from "@longjobs/core";

/** A record of about 600 bytes, as a tool call makes it. */
export function sampleRecord(taskId: string): TaskRecord {
  const nowIso = new Date().toISOString();
  return {
    taskId,
    version: Math.floor(Math.random() * 2 ** 31),
    status: "working",
    statusMessage: "Starting.",
    createdAt: nowIso,
    lastUpdatedAt: nowIso,
    ttlMs: 86_400_000,
    pollIntervalMs: 1_000,
    retentionMs: 86_400_000,
    attempt: 1,
    crashes: 0,
    scope: '["https://issuer.example","user-4711","client-42"]',
    lease: { owner: "0d4c7d0a-2f4f-4a53-8b3c-3f7e6a0f5b11", token: crypto.randomUUID(), durationMs: 30_000 },
    work: {
      tool: "build_report",
      arguments: { topic: "tides", sections: 6, language: "en" },
      client: { era: "2026-07-28", capabilities: { elicitation: { form: {} } } },
    },
  };
}

/** The three progress updates of a lifecycle. */
export const progressPatches = [1, 2, 3].map((done) => ({
  statusMessage: `Section ${done} of 3`,
  lastUpdatedAt: new Date().toISOString(),
  progress: { done, total: 3 },
}));

/** The terminal update of a lifecycle. */
export const terminalPatch = {
  status: "completed",
  statusMessage: undefined,
  lease: undefined,
  result: { content: [{ type: "text", text: "The report on tides has 6 sections." }] },
} as const;

/** A structured result of about `bytes` bytes: many small objects, as search results and tables are. */
export function structuredResult(bytes: number): {
  readonly content: readonly object[];
  readonly structuredContent: object;
} {
  const row = (index: number) => ({
    id: index,
    name: `item ${index}`,
    score: index / 7,
    tags: ["a", "b"],
    ok: index % 2 === 0,
  });
  const rows = Array.from({ length: Math.ceil(bytes / JSON.stringify(row(10_000)).length) }, (_, index) =>
    row(index),
  );
  return { content: [], structuredContent: { rows } };
}
