import { createHash } from "node:crypto";

/** One SQL statement, with its contract in front of it. */
export interface Statement {
  /** The verb of the header, such as `get-task`. */
  readonly name: string;
  /** What the header says, line by line, for the test that compares it with the call. */
  readonly header: readonly string[];
  /** The statement without its header; `{schema}` stands for the quoted schema. */
  readonly body: string;
}

/** A statement of one schema, as it is sent. */
export interface BoundStatement {
  readonly text: string;
  /** Of a prepared statement: the same for the same text only, as a connection wants it. */
  readonly name: string | undefined;
}

/**
 * Reads a statement whose first lines are its header:
 *
 * ```sql
 * -- verb-noun: what it does.
 * -- $1 first value   $2 second value
 * -- Returns: …
 * -- Atomic: … Touches: …
 * ```
 */
export function defineStatement(source: string): Statement {
  const lines = source.trim().split("\n");
  const header = lines.filter((line) => line.startsWith("--"));
  const name = /^-- ([a-z-]+): /.exec(header[0] ?? "")?.[1];
  if (name === undefined) throw new TypeError(`A statement needs a header: ${source.slice(0, 80)}`);
  return { name, header, body: lines.slice(header.length).join("\n") };
}

/** The statement for one schema; with a name if it is to be prepared. */
export function bindStatement({ name, body }: Statement, schema: string, isNamed: boolean): BoundStatement {
  const text = body.replaceAll("{schema}", `"${schema}"`);
  if (!isNamed) return { text, name: undefined };
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  return { text, name: `longjobs_${name}_${digest}` };
}
