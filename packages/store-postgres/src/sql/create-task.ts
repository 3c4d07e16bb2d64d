import { fieldColumns } from "../columns.ts";
import { ms } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

const columns = [
  "task_id",
  "version",
  "status",
  ...Object.values(fieldColumns),
  "tool",
  "lease_token",
  "lease_ends_at",
  "expires_at",
  "others",
];

/** How the columns that are not given as they are come from their value. */
const computed: Readonly<Record<string, (value: string) => string>> = {
  lease_ends_at: (value) => `coalesce(clock_timestamp() + ${value}::float8 * ${ms}, '-infinity')`,
  expires_at: (value) => `coalesce(clock_timestamp() + ${value}::float8 * ${ms}, 'infinity')`,
};

export const createTask: Statement = defineStatement(`
-- create-task: keep a new record; an expired one of the same id makes room for it.
-- $1 task id   $2 version   $3 status   $4-$24 the fields, in the order of fieldColumns   $25 tool   $26 lease token   $27 lease, ms   $28 life, ms   $29 fields without a column
-- Returns: 1 row created · 0 rows: the id is taken
-- Atomic: one row or nothing. Touches: that row of tasks.
INSERT INTO {schema}.tasks AS t (${columns.join(", ")})
VALUES (${columns.map((column, index) => computed[column]?.(`$${index + 1}`) ?? `$${index + 1}`).join(", ")})
ON CONFLICT (task_id) DO UPDATE
SET ${["born_at", ...columns.slice(1)].map((column) => `${column} = excluded.${column}`).join(", ")}
WHERE t.expires_at <= clock_timestamp()
`);
