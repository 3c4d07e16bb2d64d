/*
 * Which column keeps which field. Each holds the JSON text of its value, and NULL when the record has no such field:
 * JSON text escapes NUL and lone surrogates, which a text of Postgres cannot hold, and no digit of a number is lost.
 */

/** The fields that have a column of their own, `taskId`, `version` and `status` aside. */
export const fieldColumns = {
  statusMessage: "status_message",
  createdAt: "created_at",
  lastUpdatedAt: "last_updated_at",
  ttlMs: "ttl_ms",
  pollIntervalMs: "poll_interval_ms",
  result: "result",
  error: "error",
  scope: "scope",
  work: "work",
  inputs: "inputs",
  checkpoint: "checkpoint",
  progress: "progress",
  cancelRequestedAt: "cancel_requested_at",
  lease: "lease",
  attempt: "attempt",
  crashes: "crashes",
  finishedBy: "finished_by",
  retentionMs: "retention_ms",
  idempotency: "idempotency",
  kind: "kind",
  data: "data",
} as const;

/** A field with a column of its own. */
export type ColumnField = keyof typeof fieldColumns;

export const columnFields = Object.keys(fieldColumns) as readonly ColumnField[];

export function isColumnField(name: string): name is ColumnField {
  return Object.hasOwn(fieldColumns, name);
}

/**
 * A text that Postgres can hold, different for different texts and the same for all ordinary ones: what stands
 * between the quotes of its JSON text.
 */
export function encodeText(text: string): string {
  return ordinary.test(text) ? text : JSON.stringify(text).slice(1, -1);
}

/** The text that {@link encodeText} was given. */
export function decodeText(encoded: string): string {
  return encoded.includes("\\") ? (JSON.parse(`"${encoded}"`) as string) : encoded;
}

const ordinary = /^[\w-]*$/;
