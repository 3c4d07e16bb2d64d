import { fieldColumns } from "../columns.ts";
import { ms } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

/** How the columns that are not given as they are come from their value. */
const computed: Readonly<Record<string, (value: string) => string>> = {
  lease_ends_at: (value) => `coalesce(clock_timestamp() + ${value}::float8 * ${ms}, '-infinity')`,
  expires_at: (value) => `coalesce(born_at + ${value}::float8 * ${ms}, 'infinity')`,
};

/** What the patches of one shape set. */
export interface PatchShape {
  /** The columns, in the order of their values. */
  readonly columns: readonly string[];
  /** Whether it has fields without a column. */
  readonly others: boolean;
  /**
   * How the size of the record is known. `bound`: what it was, and what the patch brings, as if nothing went; quick, and
   * too much. `exact`: by the lengths of all columns, none of which is read for it.
   */
  readonly size: "bound" | "exact";
}

/**
 * The statement for patches of one shape. It names the changed columns alone: a large value in another column stays
 * where it is, and is not even read.
 */
export function updateTask({ columns, others, size }: PatchShape): Statement {
  let at = 4;
  const sets = columns.map((column) => {
    const value = `$${(at += 1)}`;
    return `${column} = ${computed[column]?.(value) ?? value}`;
  });
  let othersAfter = "others";
  if (others) {
    othersAfter = `nullif((coalesce(others, '{}') - $${at + 1}::text[]) || $${at + 2}::jsonb, '{}')`;
    at += 2;
    sets.push(`others = ${othersAfter}`);
  }
  const before = size === "bound" ? "bytes" : bytesBesides(columns, othersAfter);
  return defineStatement(`
-- update-task: write a patch if, and only if, the stored version is the expected one.
-- $1 task id   $2 expected version   $3 bytes of the patch   $4 the most that the record may have${at > 4 ? `   $5-$${at} the values of the patch` : ""}
-- Returns: 1 row written · 0 rows: unknown, expired, another version, or too large
-- Atomic: all or nothing. Touches: one row of tasks, and of it the version, the bytes and what the patch names.
UPDATE {schema}.tasks
SET ${["version = version + 1", `bytes = ${before} + $3`, ...sets].join(", ")}
WHERE task_id = $1 AND version = $2 AND expires_at > clock_timestamp() AND ${before} + $3 <= $4
`);
}

/** Bytes of JSON text of what a patch leaves as it is, and of the fields without a column after it. */
function bytesBesides(set: readonly string[], othersAfter: string): string {
  const fields = ["status", ...Object.values(fieldColumns)].filter((column) => !set.includes(column));
  // The quotes of the name, the colon and the comma; a status and an id are kept without quotes of their own.
  const lengths = fields.map((column) =>
    column === "status"
      ? `octet_length(status) + ${"status".length + 6}`
      : `coalesce(octet_length(${column}) + ${column.replaceAll("_", "").length + 4}, 0)`,
  );
  const frame = `octet_length(task_id) + octet_length(version::text) + ${'{"taskId":"","version":}'.length}`;
  return [frame, ...lengths, `coalesce(octet_length((${othersAfter})::text), 0)`].join(" + ");
}
