import { recordText } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

export const getTask: Statement = defineStatement(`
-- get-task: the record as it is now.
-- $1 task id
-- Returns: 1 row {record, others} · 0 rows: unknown or expired
-- Atomic: one read. Touches: nothing.
SELECT ${recordText}
FROM {schema}.tasks t
WHERE t.task_id = $1 AND t.expires_at > clock_timestamp()
`);
