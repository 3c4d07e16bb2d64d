import { storeErrors, type TaskPatch, type TaskRecord } from "@longjobs/core";
import { encodeText, fieldColumns, isColumnField } from "./columns.ts";
import { derivedCells, encodeOthers, encodeValue, fieldBytes, rowKeys, statusBytes } from "./encode-value.ts";

/** A patch as its statement takes it. */
export interface EncodedPatch {
  /** The columns to set, and their values. */
  readonly columns: readonly string[];
  readonly values: readonly (string | number | null)[];
  /** Fields that have no column: which ones go, and the JSON text of those that come. */
  readonly others: { readonly names: readonly string[]; readonly set: string } | undefined;
  /** Bytes of JSON text that the patch brings. */
  readonly bytes: number;
  /** Those of them that go into columns. */
  readonly columnBytes: number;
  /** The names of all fields of the patch. */
  readonly fields: readonly string[];
}

/**
 * Encodes a patch, at once. A field that is `undefined` is deleted (C11).
 *
 * @throws TypeError for a field that no patch may set; `record_too_large` (C20); `invalid_json`.
 */
export function encodePatch(taskId: string, patch: TaskPatch, maxBytes: number): EncodedPatch {
  const fields = Object.keys(patch);
  const columns: string[] = [];
  const values: (string | number | null)[] = [];
  const otherNames: string[] = [];
  const others = new Map<string, string>();
  let columnBytes = 0;
  let bytes = 0;
  for (const name of fields) {
    if (name === "taskId" || name === "version" || name === "createdAt")
      throw new TypeError(`A patch cannot set ${name}.`);
    const value: unknown = patch[name as keyof TaskPatch];
    if (name === "status") {
      if (typeof value !== "string") throw new TypeError("A record needs a status.");
      columns.push(name);
      values.push(encodeText(value));
      columnBytes += statusBytes(encodeText(value));
      continue;
    }
    const text = value === undefined ? null : encodeValue(name, value, maxBytes);
    if (isColumnField(name)) {
      columns.push(fieldColumns[name]);
      values.push(text);
      if (text !== null) columnBytes += fieldBytes(name, text);
      for (const cell of derivedCells(name, value)) {
        columns.push(cell.column);
        values.push(cell.value);
      }
      continue;
    }
    const key = encodeText(name);
    otherNames.push(key);
    if (text === null) continue;
    others.set(key, text);
    bytes += fieldBytes(key, text);
  }
  bytes += columnBytes;
  if (bytes > maxBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxBytes);
  return {
    columns,
    values,
    others: otherNames.length === 0 ? undefined : { names: otherNames, set: encodeOthers(others) },
    bytes,
    columnBytes,
    fields,
  };
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
