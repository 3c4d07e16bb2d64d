import { LongJobsError, storeErrors, type TaskRecord } from "@longjobs/core";
import { columnFields, encodeText, fieldColumns, isColumnField } from "./columns.ts";
import {
  derivedCells,
  encodeOthers,
  encodeValue,
  fieldBytes,
  rowKeys,
  statusBytes,
  type Cell,
} from "./encode-value.ts";

/** A record as the statement that creates it takes it. */
export interface EncodedRecord {
  /** In the order of its values. */
  readonly values: unknown[];
  /** Bytes of the record's JSON text. */
  readonly bytes: number;
}

/** The most that an index of Postgres can hold as one key, with room to spare. */
const MAX_ID_BYTES = 2_000;

/**
 * Encodes a whole record, at once: what the caller changes afterwards changes nothing (C6).
 *
 * @throws TypeError for what is no record; `record_too_large` (C20); `invalid_json`.
 */
export function encodeRecord(record: TaskRecord, maxBytes: number): EncodedRecord {
  const { taskId, version, status, work, lease, ttlMs } = record;
  if (typeof taskId !== "string" || typeof status !== "string")
    throw new TypeError("A record needs a taskId and a status.");
  if (!Number.isSafeInteger(version)) throw new TypeError("The version of a record is a safe integer.");
  const id = encodeId(taskId);
  let bytes = '{"taskId":"","version":}'.length + Buffer.byteLength(id) + String(version).length;
  bytes += statusBytes(encodeText(status));
  const texts = new Map<string, string>();
  const others = new Map<string, string>();
  for (const name of Object.keys(record)) {
    const value: unknown = record[name as keyof TaskRecord];
    if (value === undefined || rowKeys.has(name)) continue;
    const text = encodeValue(name, value, maxBytes);
    const key = isColumnField(name) ? name : encodeText(name);
    (isColumnField(name) ? texts : others).set(key, text);
    bytes += fieldBytes(key, text);
  }
  if (bytes > maxBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxBytes);
  const cells: Cell[] = columnFields.map((name) => ({
    column: fieldColumns[name],
    value: texts.get(name) ?? null,
  }));
  cells.push(...derivedCells("work", work), ...derivedCells("lease", lease), ...derivedCells("ttlMs", ttlMs));
  return {
    values: [
      id,
      String(version),
      encodeText(status),
      ...cells.map(({ value }) => value),
      others.size === 0 ? null : encodeOthers(others),
    ],
    bytes,
  };
}

function encodeId(taskId: string): string {
  const id = encodeText(taskId);
  if (Buffer.byteLength(id) <= MAX_ID_BYTES) return id;
  throw new LongJobsError("record_too_large", `An id has at most ${MAX_ID_BYTES} bytes.`, {
    param: "taskId",
  });
}
