import { freezeParsedJson, type TaskRecord } from "@longjobs/core";
import { decodeText } from "./columns.ts";
import { corruptRecord } from "./postgres-errors.ts";

/** A row of a statement that returns records. */
export interface RecordRow {
  /** The JSON text of the record, the fields without a column aside. */
  readonly record: string;
  /** Those: an object of JSON texts, by encoded name. */
  readonly others: string | null;
}

/** A record, and the bytes of its JSON text. */
export interface DecodedRow {
  readonly record: TaskRecord;
  readonly bytes: number;
}

/** @throws `record_corrupt` for a row that no version of this package wrote. */
export function decodeRow(row: object): DecodedRow {
  const { record: inColumns, others } = row as RecordRow;
  let text: string;
  let record: TaskRecord;
  try {
    text = others === null ? inColumns : withOthers(inColumns, others);
    record = JSON.parse(text) as TaskRecord;
  } catch (error) {
    throw corruptRecord("a task", error);
  }
  // A number beyond 2^53 has lost its last digits: a compare-and-swap with it would be a guess.
  if (!Number.isSafeInteger(record.version)) throw corruptRecord(`task ${record.taskId}`);
  return { record: freezeParsedJson(record), bytes: Buffer.byteLength(text) };
}

/** As one text: an assignment would lose a key such as `__proto__`. */
function withOthers(text: string, others: string): string {
  const fields = Object.entries(JSON.parse(others) as Record<string, string>);
  const added = fields.map(([name, value]) => `,${JSON.stringify(decodeText(name))}:${value}`);
  return `${text.slice(0, -1)}${added.join("")}}`;
}
