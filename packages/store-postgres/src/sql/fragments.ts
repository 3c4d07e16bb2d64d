import { columnFields, fieldColumns } from "../columns.ts";

/** The JSON text of a row's record, its fields without a column aside, which are in `others`. */
export const recordText: string = `concat('{"taskId":"', t.task_id, '","version":', t.version, ',"status":"', t.status, '"',
  ${columnFields.map((name) => `',"${name}":' || t.${fieldColumns[name]}`).join(", ")}, '}') AS record,
  t.others::text AS others`;

/** Not terminal. */
export const isOpen: string = "status NOT IN ('completed', 'failed', 'cancelled')";

/** Which records `claim` may take, their lease aside. As the index `tasks_claimable` has it, word for word. */
const openTask: string = `kind IS NULL AND ${isOpen}`;

/** Milliseconds, in a statement. */
export const ms: string = "interval '1 millisecond'";

/**
 * The time now, once for the whole statement and known before any index is read: a call of the function would
 * be a filter for each row. Not `now()`, which stands still in a transaction.
 */
export const nowOnce: string = "(SELECT clock_timestamp())";

/**
 * Takes free tasks. The rows are locked first, in a step of its own: a plan that chose them again for each row to
 * write could take more than the limit. As an array they are found by the primary key; a join alone may read the
 * whole table.
 */
export function claimFree(condition: string): string {
  return `WITH free AS MATERIALIZED (
  SELECT task_id, gen_random_uuid()::text AS token FROM {schema}.tasks
  WHERE ${openTask} AND lease_ends_at <= ${nowOnce} AND expires_at > ${nowOnce}
    AND ($5::text[] IS NULL OR tool = ANY($5) OR cancel_requested_at IS NOT NULL) ${condition}
  ORDER BY lease_ends_at LIMIT $4::int
  FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.tasks t
SET version = version + 1, lease = $1 || free.token || $2, lease_token = free.token,
  lease_ends_at = clock_timestamp() + $3::float8 * ${ms}
FROM free WHERE t.task_id = free.task_id AND t.task_id = ANY(ARRAY(SELECT task_id FROM free))
RETURNING ${recordText}`;
}
