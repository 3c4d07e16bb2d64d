import { normalizeJson, type Lease, type TaskWork } from "@longjobs/core";
import { encodeText, type ColumnField } from "./columns.ts";

/** A column and the value that a statement gives it. */
export interface Cell {
  readonly column: string;
  readonly value: string | number | null;
}

/** Deeper than any engine writes, shallower than where JSON.stringify overflows the stack. */
const MAX_DEPTH = 1_000;

/** Beyond it, in milliseconds, a date is none: such a task never expires. Some 3,000 years. */
const MAX_SPAN_MS = 1e14;

/** Fields that the row has in other ways than as JSON text. */
export const rowKeys: ReadonlySet<string> = new Set(["taskId", "version", "status"]);

/** The JSON text of a field's value. @throws `invalid_json`; `record_too_large` */
export function encodeValue(name: string, value: unknown, maxBytes: number): string {
  return JSON.stringify(normalizeJson(value, name, { maxDepth: MAX_DEPTH, maxKeys: Infinity, maxBytes }));
}

/** Bytes of a field in the JSON text of its record: the quotes of the name, the colon and the comma are four. */
export function fieldBytes(name: string, text: string): number {
  return name.length + 4 + Buffer.byteLength(text);
}

/** The same for a status, which is kept without its quotes. */
export function statusBytes(status: string): number {
  return fieldBytes("status", status) + 2;
}

/** What the store interprets of a field, in columns of its own. */
export function derivedCells(name: ColumnField, value: unknown): readonly Cell[] {
  if (name === "work") {
    const tool: unknown = (value as TaskWork | undefined)?.tool;
    return [{ column: "tool", value: typeof tool === "string" ? encodeText(tool) : null }];
  }
  if (name === "lease") {
    const { token, durationMs }: Partial<Lease> = (value as Lease | null | undefined) ?? {};
    return [
      { column: "lease_token", value: typeof token === "string" ? encodeText(token) : null },
      { column: "lease_ends_at", value: spanOf(durationMs) },
    ];
  }
  return name === "ttlMs" ? [{ column: "expires_at", value: spanOf(value) }] : nothing;
}

const nothing: readonly Cell[] = [];

/**
 * Fields without a column, by encoded name, as the text of one object. Its values are texts themselves: Postgres would
 * read numbers and NUL in ways of its own.
 */
export function encodeOthers(others: ReadonlyMap<string, string>): string {
  return `{${[...others].map(([name, text]) => `${JSON.stringify(name)}:${JSON.stringify(text)}`).join(",")}}`;
}

function spanOf(ms: unknown): number | null {
  return typeof ms === "number" && Number.isFinite(ms) && ms <= MAX_SPAN_MS ? Math.max(0, ms) : null;
}
