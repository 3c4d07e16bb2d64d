import { LongJobsError, normalizeJson, storeErrors, type TaskPatch, type TaskRecord } from "@longjobs/core";
import { columnFields, encodeText, fieldColumns, isColumnField, type ColumnField } from "./columns.ts";

/** A column and the value that a statement gives it. */
export interface Cell {
  readonly column: string;
  readonly value: string | number | null;
}

/** A patch as its statement takes it. */
export interface EncodedPatch {
  /** What to set, in the order of the columns. */
  readonly cells: readonly Cell[];
  /** Fields that have no column: which ones go, and the JSON text of those that come. */
  readonly others: { readonly names: readonly string[]; readonly set: string } | undefined;
  /** Bytes of JSON text that the patch brings. */
  readonly bytes: number;
  /** Those of them that go into columns. */
  readonly columnBytes: number;
  /** The names of all fields of the patch. */
  readonly fields: readonly string[];
}

/** A record as the statement that creates it takes it. */
export interface EncodedRecord {
  readonly taskId: string;
  readonly version: string;
  readonly cells: readonly Cell[];
  readonly others: string | null;
  /** Bytes of its JSON text. */
  readonly bytes: number;
}

/** Deeper than any engine writes, shallower than where JSON.stringify overflows the stack. */
const MAX_DEPTH = 1_000;

/** The most that an index of Postgres can hold as one key, with room to spare. */
const MAX_ID_BYTES = 2_000;

/** Beyond it, in milliseconds, a date is none: such a task never expires. Some 3,000 years. */
const MAX_SPAN_MS = 1e14;

const fixedFields = ["taskId", "version", "createdAt"] as const;

/** Fields that the row has in other ways than as JSON text. */
const rowKeys: ReadonlySet<string> = new Set(["taskId", "version", "status"]);

/**
 * Encodes a whole record, at once: what the caller changes afterwards changes nothing (C6).
 *
 * @throws TypeError for what is no record; `record_too_large` (C20); `invalid_json`.
 */
export function encodeRecord(record: TaskRecord, maxBytes: number): EncodedRecord {
  const { taskId, version, status } = record;
  if (typeof taskId !== "string" || typeof status !== "string")
    throw new TypeError("A record needs a taskId and a status.");
  if (!Number.isSafeInteger(version)) throw new TypeError("The version of a record is a safe integer.");
  const id = encodeText(taskId);
  if (Buffer.byteLength(id) > MAX_ID_BYTES) {
    throw new LongJobsError("record_too_large", `An id has at most ${MAX_ID_BYTES} bytes.`, {
      param: "taskId",
    });
  }
  const texts = encodeTexts(record, maxBytes);
  const bytes = sizeOf(id, version, status) + bytesOf([...texts]);
  if (bytes > maxBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxBytes);
  const cells: Cell[] = [{ column: "status", value: encodeText(status) }];
  for (const name of columnFields) {
    cells.push({ column: fieldColumns[name], value: texts.get(name) ?? null });
  }
  cells.push(...derivedCells(record, ["work", "lease", "ttlMs"]));
  return { taskId: id, version: String(version), cells, others: encodeOthers(texts), bytes };
}

/**
 * Encodes a patch, at once. A field that is `undefined` is deleted (C11).
 *
 * @throws TypeError for a field that no patch may set; `record_too_large`; `invalid_json`.
 */
export function encodePatch(taskId: string, patch: TaskPatch, maxBytes: number): EncodedPatch {
  for (const field of fixedFields) {
    if (Object.hasOwn(patch, field)) throw new TypeError(`A patch cannot set ${field}.`);
  }
  const texts = encodeTexts(patch, maxBytes);
  const fields = Object.keys(patch);
  const cells: Cell[] = [];
  let columnBytes = bytesOf([...texts].filter(([name]) => isColumnField(name)));
  if (Object.hasOwn(patch, "status")) {
    const { status } = patch;
    if (typeof status !== "string") throw new TypeError("A record needs a status.");
    cells.push({ column: "status", value: encodeText(status) });
    columnBytes += statusBytes(status);
  }
  const named = columnFields.filter((name) => Object.hasOwn(patch, name));
  for (const name of named) {
    cells.push({ column: fieldColumns[name], value: texts.get(name) ?? null });
  }
  cells.push(...derivedCells(patch, named));
  const bytes = columnBytes + bytesOf([...texts].filter(([name]) => !isColumnField(name)));
  if (bytes > maxBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxBytes);
  const names = fields.filter((name) => !isColumnField(name) && name !== "status");
  const others =
    names.length === 0 ? undefined : { names: names.map(encodeText), set: encodeOthers(texts) ?? "{}" };
  return { cells, others, bytes, columnBytes, fields };
}

/** Bytes of JSON text of a record after a patch, as the server counts them. */
export function bytesAfter(record: TaskRecord, { columnBytes, fields, others }: EncodedPatch): number {
  const rest = Object.entries(record).filter(([name]) => !fields.includes(name));
  const inColumns = rest.filter(([name]) => isColumnField(name) || rowKeys.has(name));
  const besides = rest.filter(([name]) => !isColumnField(name) && !rowKeys.has(name));
  const next = {
    ...Object.fromEntries(besides.map(([name, value]) => [encodeText(name), JSON.stringify(value)])),
    ...(JSON.parse(others?.set ?? "{}") as object),
  };
  const count = Object.keys(next).length;
  // Postgres writes a space behind each colon and comma of a jsonb.
  const othersBytes = count === 0 ? 0 : Buffer.byteLength(JSON.stringify(next)) + 2 * count - 1;
  return Buffer.byteLength(JSON.stringify(Object.fromEntries(inColumns))) + columnBytes + othersBytes;
}

/** What the store interprets of a field, in columns of its own. */
function derivedCells(
  { work, lease, ttlMs }: Partial<TaskRecord> | TaskPatch,
  named: readonly ColumnField[],
): Cell[] {
  const cells: Cell[] = [];
  if (named.includes("work")) {
    const tool: unknown = work?.tool;
    cells.push({ column: "tool", value: typeof tool === "string" ? encodeText(tool) : null });
  }
  if (named.includes("lease")) {
    const token: unknown = lease?.token;
    cells.push({ column: "lease_token", value: typeof token === "string" ? encodeText(token) : null });
    cells.push({ column: "lease_ends_at", value: spanOf(lease?.durationMs) });
  }
  if (named.includes("ttlMs")) cells.push({ column: "expires_at", value: spanOf(ttlMs) });
  return cells;
}

function spanOf(ms: unknown): number | null {
  return typeof ms === "number" && Number.isFinite(ms) && ms <= MAX_SPAN_MS ? Math.max(0, ms) : null;
}

/** The JSON text of each field that has a value and is no key of the row. */
function encodeTexts(fields: object, maxBytes: number): Map<string, string> {
  const limits = { maxDepth: MAX_DEPTH, maxKeys: Infinity, maxBytes };
  const texts = new Map<string, string>();
  for (const name of Object.keys(fields)) {
    const value: unknown = fields[name as never];
    if (value === undefined || rowKeys.has(name)) continue;
    texts.set(name, JSON.stringify(normalizeJson(value, name, limits)));
  }
  return texts;
}

function encodeOthers(texts: ReadonlyMap<string, string>): string | null {
  const others = [...texts].filter(([name]) => !isColumnField(name));
  if (others.length === 0) return null;
  // As texts inside of the object: Postgres would read numbers and NUL of its own kind.
  return `{${others.map(([name, text]) => `${JSON.stringify(encodeText(name))}:${JSON.stringify(text)}`).join(",")}}`;
}

function bytesOf(texts: readonly (readonly [string, string])[]): number {
  let bytes = 0;
  // The quotes of the name, the colon and the comma.
  for (const [name, text] of texts) bytes += encodeText(name).length + 4 + Buffer.byteLength(text);
  return bytes;
}

function statusBytes(status: string): number {
  return '"status":"",'.length + Buffer.byteLength(encodeText(status));
}

function sizeOf(id: string, version: number, status: string): number {
  return (
    '{"taskId":"","version":}'.length + Buffer.byteLength(id) + String(version).length + statusBytes(status)
  );
}
