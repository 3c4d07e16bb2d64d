import {
  LongJobsError,
  normalizeJson,
  setOwn,
  storeErrors,
  type TaskPatch,
  type TaskRecord,
} from "@longjobs/core";
import type { EncodedId } from "./encode-id.ts";
import { LARGE_FIELD_BYTES } from "./frame-format.ts";
import type { BlobRef } from "./log-segment.ts";

/** One field of a record as JSON text. */
export interface TaskField {
  readonly name: string;
  /** The name as a JSON string. */
  readonly key: string;
  readonly keyBytes: number;
  /** Bytes of the value's text. */
  readonly bytes: number;
  /** A small field as every frame has it, behind another one: `,"name":value`. */
  readonly member: string | undefined;
  /** The value of a large field, until it is written; then there is a reference to it. */
  value: string | undefined;
  ref: BlobRef | undefined;
}

/** Bytes of {@link TaskField.member}: a comma and a colon come on top. */
export function memberBytes({ keyBytes, bytes }: TaskField): number {
  return keyBytes + bytes + 2;
}

/** `"taskId":`, `"version":`, the comma between them and the braces. */
const FRAME_OF_RECORD_BYTES = 2 + 9 + 1 + 10;

/** Deeper than any engine writes, shallower than where JSON.stringify overflows the stack. */
const MAX_DEPTH = 1_000;

/** A frame has 16 bits for the bytes of a name. */
const MAX_KEY_LENGTH = 10_000;

/** Fields that the frame has in places of their own. */
const outside = new Set(["taskId", "version"]);

/** True for a field whose value lies apart from the small ones. */
export function isLarge(field: TaskField): boolean {
  return field.bytes > LARGE_FIELD_BYTES;
}

/** True for a task that is neither terminal nor a record of another kind. */
export function isOpen(fields: readonly TaskField[]): boolean {
  let open = false;
  for (const { name, member } of fields) {
    if (name === "kind") return false;
    if (name === "status" && member !== undefined) open = !terminalMembers.has(member);
  }
  return open;
}

const terminalMembers = new Set(
  ["completed", "failed", "cancelled"].map((status) => `,"status":"${status}"`),
);

/** A frozen copy of what the caller gave (C6); what is frozen already is shared. */
export function snapshotRecord(record: TaskRecord, maxBytes: number): TaskRecord {
  assertRecord(record);
  return Object.freeze(snapshot(record, maxBytes, false)) as TaskRecord;
}

/** The same for a patch: a field that is `undefined` stays, because it deletes (C11). */
export function snapshotPatch(patch: TaskPatch, maxBytes: number): TaskPatch {
  for (const field of outside) {
    if (Object.hasOwn(patch, field))
      throw new TypeError(`A patch cannot set ${field}: it belongs to the store.`);
  }
  return snapshot(patch, maxBytes, true);
}

/**
 * Every field of a record, encoded.
 *
 * @param known - Fields of it that are encoded already, such as large ones that are on disk.
 */
export function encodeFields(record: TaskRecord, known: readonly TaskField[] = []): TaskField[] {
  const fields: TaskField[] = [];
  for (const name of Object.keys(record)) {
    if (name === "taskId" || name === "version") continue;
    const field = known.length === 0 ? undefined : known.find((one) => one.name === name);
    fields.push(field ?? encodeField(name, record[name as keyof TaskRecord]));
  }
  return fields;
}

/** The fields after a patch; only what it names is encoded. */
export function patchFields(fields: readonly TaskField[], patch: TaskPatch): TaskField[] {
  const next = fields.slice();
  for (const name of Object.keys(patch)) {
    const value: unknown = patch[name as keyof TaskPatch];
    const at = next.findIndex((field) => field.name === name);
    if (value === undefined) {
      if (at >= 0) next.splice(at, 1);
    } else if (at >= 0) next[at] = encodeField(name, value);
    else next.push(encodeField(name, value));
  }
  return next;
}

/** The exact bytes of the record's JSON text. @throws LongJobsError `record_too_large` (C20) */
export function assertFits(
  { taskId, textBytes }: EncodedId,
  version: number,
  fields: readonly TaskField[],
  maxBytes: number,
): number {
  let bytes = FRAME_OF_RECORD_BYTES + textBytes + `${version}`.length;
  for (const field of fields) bytes += memberBytes(field);
  if (bytes > maxBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxBytes);
  return bytes;
}

function encodeField(name: string, value: unknown): TaskField {
  const { key, keyBytes } = encodeName(name);
  const isPlain = typeof value === "number" || (typeof value === "string" && plainText.test(value));
  const text = !isPlain ? JSON.stringify(value) : typeof value === "string" ? `"${value}"` : `${value}`;
  const bytes = isPlain ? text.length : Buffer.byteLength(text);
  return bytes > LARGE_FIELD_BYTES
    ? { name, key, keyBytes, bytes, member: undefined, value: text, ref: undefined }
    : { name, key, keyBytes, bytes, member: `,${key}:${text}`, value: undefined, ref: undefined };
}

/** A large field that is on disk already. */
export function fieldAt(key: string, ref: BlobRef): TaskField {
  const name = JSON.parse(key) as string;
  return { name, ...encodeName(name), bytes: ref.bytes, member: undefined, value: undefined, ref };
}

/** ASCII without anything that JSON escapes: in quotation marks it is its own JSON text. */
const plainText = /^[ !#-[\]-~]*$/;

interface EncodedName {
  readonly key: string;
  readonly keyBytes: number;
}

/** The names of a record's fields are few and always the same. */
const knownNames = new Map<string, EncodedName>();
const MAX_KNOWN_NAMES = 256;

function encodeName(name: string): EncodedName {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  const key = JSON.stringify(name);
  if (key.length > MAX_KEY_LENGTH) {
    throw new LongJobsError(
      "invalid_json",
      `The name of a field is longer than ${MAX_KEY_LENGTH} characters.`,
    );
  }
  const encoded = { key, keyBytes: Buffer.byteLength(key) };
  if (knownNames.size < MAX_KNOWN_NAMES) knownNames.set(name, encoded);
  return encoded;
}

function snapshot(fields: object, maxBytes: number, keepsUndefined: boolean): Record<string, unknown> {
  const limits = { maxDepth: MAX_DEPTH, maxKeys: Infinity, maxBytes };
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value: unknown = fields[name as never];
    if (value === undefined && !keepsUndefined) continue;
    const isWhole = value === undefined || typeof value === "string";
    setOwn(copy, name, isWhole ? value : normalizeJson(value, name, limits));
  }
  return copy;
}

function assertRecord(record: TaskRecord): void {
  if (typeof record.taskId !== "string" || typeof record.status !== "string") {
    throw new TypeError("A record needs a taskId and a status.");
  }
  if (!Number.isSafeInteger(record.version))
    throw new TypeError("The version of a record is a safe integer.");
}

/**
 * Builds a record from its parts as one JSON text: assignment would lose a key such as `__proto__`.
 *
 * @throws LongJobsError `record_corrupt` when the text is JSON, but not a record.
 */
export function parseRecord(
  taskId: string,
  version: number,
  smallText: string,
  large: readonly [string, string][],
): TaskRecord {
  const inner = smallText.slice(1, -1);
  let text = `{"taskId":${JSON.stringify(taskId)},"version":${version}`;
  if (inner !== "") text += `,${inner}`;
  for (const [key, value] of large) text += `,${key}:${value}`;
  const record = parseOrUndefined(`${text}}`);
  if (record === undefined || typeof record.status !== "string") {
    throw new LongJobsError("record_corrupt", `What is stored for task ${taskId} is not a record.`);
  }
  return record;
}

function parseOrUndefined(text: string): TaskRecord | undefined {
  try {
    return JSON.parse(text) as TaskRecord;
  } catch {
    // The caller reports it as damage: bytes that pass their checksum but are not JSON.
    return undefined;
  }
}
