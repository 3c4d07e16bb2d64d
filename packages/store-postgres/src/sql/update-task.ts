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
  /** Whether the server counts the bytes: when the caller does not know how large the record is. */
  readonly counts: boolean;
}

/**
 * The statement for patches of one shape. It names the changed columns alone: a large value in another column stays
 * where it is, and is not even read, not for its length either.
 */
export function updateTask({ columns, others, counts }: PatchShape): Statement {
  let at = 2;
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
  const values = at > 2 ? `   $3-$${at} the values of the patch` : "";
  const limit = counts
    ? `   $${at + 1} their bytes in columns   $${at + 2} the most that the record may have`
    : "";
  const room = counts ? ` AND ${bytesOf(columns, othersAfter)} + $${at + 1} <= $${at + 2}` : "";
  const size = counts ? `RETURNING (${bytesOf([], "others")})::text AS bytes` : "";
  return defineStatement(`
-- update-task: write a patch if, and only if, the stored version is the expected one.
-- $1 task id   $2 expected version${values}${limit}
-- Returns: 1 row written${counts ? " {bytes}" : ""} · 0 rows: unknown, expired, another version${counts ? ", or too large" : ""}
-- Atomic: all or nothing. Touches: one row of tasks, and of it the version and what the patch names.
UPDATE {schema}.tasks
SET ${["version = version + 1", ...sets].join(", ")}
WHERE task_id = $1 AND version = $2 AND expires_at > clock_timestamp()${room}
${size}`);
}

/** Bytes of a record's JSON text without the columns that a patch sets. */
function bytesOf(set: readonly string[], others: string): string {
  const fields = ["status", ...Object.values(fieldColumns)].filter((column) => !set.includes(column));
  // The quotes of the name, the colon and the comma; a status and an id are kept without quotes of their own.
  const lengths = fields.map((column) =>
    column === "status"
      ? `octet_length(status) + ${"status".length + 6}`
      : `coalesce(octet_length(${column}) + ${column.replaceAll("_", "").length + 4}, 0)`,
  );
  const frame = `octet_length(task_id) + octet_length(version::text) + ${'{"taskId":"","version":}'.length}`;
  return [frame, ...lengths, `coalesce(octet_length((${others})::text), 0)`].join(" + ");
}
