import { LongJobsError, setOwn, storeErrors, type TaskPatch, type TaskRecord } from "@longjobs/core";
import { decodeText, encodeText } from "./encode-text.ts";

/** Far more than any record has, and few enough for the arguments of one Redis command inside of a script. */
const MOST_FIELDS = 1_000;

/** Beyond this many milliseconds, some 140,000 years, a number of the server's clock is no longer exact. */
const LONGEST_MS = 2 ** 52;

/** A record, or the fields that a patch sets, as names and JSON texts in turn. */
export interface WrittenFields {
  readonly pairs: readonly string[];
  readonly deleted: readonly string[];
}

/** Every field of a record that has a value. */
export function writeRecord(record: TaskRecord): WrittenFields {
  if (typeof record.taskId !== "string" || typeof record.status !== "string") {
    throw new TypeError("A record needs a taskId and a status.");
  }
  if (!Number.isSafeInteger(record.version))
    throw new TypeError("The version of a record is a safe integer.");
  const { pairs } = writeFields(record, "taskId");
  return { pairs, deleted: [] };
}

/** What a patch sets and deletes. @throws TypeError for a field that no patch changes (C11). */
export function writePatch(patch: TaskPatch): WrittenFields {
  for (const field of ["taskId", "version", "createdAt"]) {
    if (Object.hasOwn(patch, field)) throw new TypeError(`A patch cannot set ${field}.`);
  }
  return writeFields(patch, undefined);
}

/**
 * Refuses what is too large for certain before it is sent: a text has no more characters than bytes. The script
 * counts the bytes of the whole record.
 *
 * @throws LongJobsError `record_too_large` (C20)
 */
export function assertMayFit(taskId: string, pairs: readonly string[], maxBytes: number): void {
  let units = 0;
  for (const text of pairs) units += text.length;
  if (units > maxBytes) throw storeErrors.recordTooLarge(taskId, units, maxBytes);
}

function writeFields(fields: object, except: string | undefined): WrittenFields {
  const pairs: string[] = [];
  const deleted: string[] = [];
  for (const name of Object.keys(fields)) {
    if (name === except) continue;
    const value: unknown = fields[name as never];
    if (value === undefined) deleted.push(encodeText(name));
    else pairs.push(encodeText(name), writeValue(name, value));
  }
  if (pairs.length / 2 + deleted.length > MOST_FIELDS) {
    throw new LongJobsError("invalid_json", `A record has at most ${MOST_FIELDS} fields of its own.`);
  }
  return { pairs, deleted };
}

/** JSON text is plain ASCII where UTF-8 has nothing to say: a lone surrogate is written as an escape. */
function writeValue(name: string, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new LongJobsError("invalid_json", `The field ${name} cannot be written as JSON.`, { cause: error });
  }
  if (text === undefined)
    throw new LongJobsError("invalid_json", `The field ${name} cannot be written as JSON.`);
  return text;
}

/**
 * The record in the reply of a script, or `undefined` for an empty one.
 *
 * @throws LongJobsError `record_corrupt` when somebody else wrote there.
 */
export function readRecord(taskId: string, reply: unknown): TaskRecord | undefined {
  const texts = reply as readonly string[];
  if (texts.length === 0) return undefined;
  const record: Record<string, unknown> = { taskId };
  for (let index = 0; index < texts.length; index += 2) {
    const name = texts[index] ?? "";
    // What the store keeps for itself beside the record.
    if (name.startsWith("@")) continue;
    setOwn(record, decodeText(name), readValue(taskId, texts[index + 1] ?? ""));
  }
  if (typeof record["status"] !== "string" || typeof record["version"] !== "number") throw corrupt(taskId);
  return record as TaskRecord;
}

function readValue(taskId: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw corrupt(taskId, error);
  }
}

function corrupt(taskId: string, cause?: unknown): LongJobsError {
  return new LongJobsError("record_corrupt", `What Redis holds for task ${taskId} is not a record.`, {
    cause,
  });
}

/** A time to live as scripts take it. A record without a usable one never expires, as `isExpired` has it for `null`. */
export function lifeArgument(ttlMs: unknown): string {
  return typeof ttlMs === "number" && ttlMs < LONGEST_MS ? wholeMs(ttlMs) : "never";
}

/** The duration of a lease as scripts take it. */
export function leaseArgument(lease: TaskRecord["lease"]): string {
  const durationMs: unknown = lease?.durationMs;
  return typeof durationMs === "number" && durationMs > 0
    ? wholeMs(Math.min(durationMs, LONGEST_MS))
    : "none";
}

/** The token of a lease as scripts compare it; empty when there is none. */
export function tokenArgument(token: unknown): string {
  return typeof token === "string" ? encodeText(token) : "";
}

function wholeMs(ms: number): string {
  return String(Math.max(0, Math.ceil(ms)));
}
