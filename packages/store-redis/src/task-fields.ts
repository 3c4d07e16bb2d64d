import { LongJobsError, setOwn, storeErrors, type TaskRecord } from "@longjobs/core";
import { decodeText, encodeText } from "./encode-text.ts";

/** Far more than any record has, and few enough for the arguments of one Redis command inside of a script. */
const MOST_FIELDS = 1_000;

/** Beyond this many milliseconds, some 140,000 years, a number of the server's clock is no longer exact. */
const LONGEST_MS = 2 ** 52;

/** @throws TypeError for what is no record */
export function assertRecord(record: TaskRecord): void {
  if (typeof record.taskId !== "string" || typeof record.status !== "string") {
    throw new TypeError("A record needs a taskId and a status.");
  }
  if (!Number.isSafeInteger(record.version))
    throw new TypeError("The version of a record is a safe integer.");
}

/** What {@link appendFields} found. */
export interface AppendedFields {
  /** The names of fields whose value is `undefined`. */
  readonly absent: readonly string[];
  /** No text takes more bytes: a character of UTF-16 is at most three, and a field has two quotes, a colon and a comma. */
  readonly mostBytes: number;
}

/**
 * Appends the fields of a record or a patch to the arguments of a script, name and JSON text in turn, without the id,
 * which is in the key.
 *
 * What is too large for certain is refused here, before it is sent: a text has no more characters than bytes. The
 * script counts the bytes of the whole record.
 *
 * @throws LongJobsError `invalid_json`; `record_too_large` (C20)
 */
export function appendFields(
  taskId: string,
  fields: object,
  values: string[],
  maxBytes: number,
): AppendedFields {
  const absent: string[] = [];
  let units = 0;
  let count = 0;
  for (const name of Object.keys(fields)) {
    if (name === "taskId") continue;
    count += 1;
    const value: unknown = fields[name as never];
    const written = writeName(name);
    if (value === undefined) absent.push(written);
    else {
      const text = writeValue(name, value);
      units += written.length + text.length;
      values.push(written, text);
    }
  }
  if (units > maxBytes) throw storeErrors.recordTooLarge(taskId, units, maxBytes);
  if (count > MOST_FIELDS) {
    throw new LongJobsError("invalid_json", `A record has at most ${MOST_FIELDS} fields of its own.`);
  }
  return { absent, mostBytes: 3 * units + 4 * count };
}

/** The names of fields are few and always the same. */
const knownNames = new Map<string, string>();
const MOST_KNOWN_NAMES = 256;

function writeName(name: string): string {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  const written = encodeText(name);
  if (knownNames.size < MOST_KNOWN_NAMES) knownNames.set(name, written);
  return written;
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

/** The reply of a script that answers with a code, or with a list that begins with one. */
export function asList(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [reply];
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
