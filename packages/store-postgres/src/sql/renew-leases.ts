import { isOpen, ms } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

export const renewLeases: Statement = defineStatement(`
-- renew-leases: move the deadline of each lease whose token is still the record's.
-- $1 task ids   $2 tokens, in the same order   $3 lease, ms
-- Returns: a row {task_id} for each lease renewed; no row: lost
-- Atomic: all or nothing. Touches: the deadline of those rows of tasks; no version.
UPDATE {schema}.tasks t
SET lease_ends_at = clock_timestamp() + $3::float8 * ${ms}
FROM unnest($1::text[], $2::text[]) AS held (task_id, token)
WHERE t.task_id = held.task_id AND t.lease_token = held.token AND t.expires_at > clock_timestamp()
  AND ${isOpen}
RETURNING t.task_id
`);
