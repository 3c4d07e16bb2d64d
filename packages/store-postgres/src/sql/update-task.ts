import { ms } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

/** How the columns that are not given as they are come from their value. */
const computed: Readonly<Record<string, (value: string) => string>> = {
  lease_ends_at: (value) => `coalesce(clock_timestamp() + ${value}::float8 * ${ms}, '-infinity')`,
  expires_at: (value) => `coalesce(born_at + ${value}::float8 * ${ms}, 'infinity')`,
};

/** What the patches of one shape set. */
export interface PatchShape {
  /** Columns with a value of their own. */
  readonly columns: readonly string[];
  /** The columns among them whose old bytes no longer count. */
  readonly replaced: readonly string[];
  /** Whether it has fields without a column. */
  readonly others: boolean;
}

/**
 * The statement for patches of one shape. It names the changed columns alone: a large value in another column stays
 * where it is, and is not even read.
 */
export function updateTask({ columns, replaced, others }: PatchShape): Statement {
  let at = 3;
  const sets = columns.map((column) => {
    const value = `$${(at += 1)}`;
    return `${column} = ${computed[column]?.(value) ?? value}`;
  });
  let freed = replaced.map((column) => ` - ${bytesOf(column)}`).join("");
  if (others) {
    const next = `nullif((coalesce(others, '{}') - $${at + 1}::text[]) || $${at + 2}::jsonb, '{}')`;
    at += 2;
    sets.push(`others = ${next}`);
    freed += ` - coalesce(octet_length(others::text), 0) + coalesce(octet_length((${next})::text), 0)`;
  }
  return defineStatement(`
-- update-task: write a patch if, and only if, the stored version is the expected one.
-- $1 task id   $2 expected version   $3 bytes that the rest of the record may have${at > 3 ? `   $4-$${at} the values of the patch` : ""}
-- Returns: 1 row written · 0 rows: unknown, expired, another version, or too large
-- Atomic: all or nothing. Touches: one row of tasks, and of it the version and what the patch names.
UPDATE {schema}.tasks
SET ${["version = version + 1", ...sets].join(", ")}
WHERE task_id = $1 AND version = $2 AND expires_at > clock_timestamp() AND bytes${freed} <= $3
`);
}

/** Bytes of JSON text of a column with its name, as the column `bytes` counts them. */
function bytesOf(column: string): string {
  // The quotes of the name, the colon and the comma; a status is kept without quotes of its own.
  if (column === "status") return `(octet_length(status) + ${"status".length + 6})`;
  return `coalesce(octet_length(${column}) + ${column.replaceAll("_", "").length + 4}, 0)`;
}
