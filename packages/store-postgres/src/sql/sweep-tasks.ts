import { nowOnce } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

export const sweepTasks: Statement = defineStatement(`
-- sweep-tasks: delete expired records, the longest expired first.
-- $1 the most to delete
-- Returns: as many rows as were deleted
-- Atomic: all or nothing. Touches: expired rows of tasks that nobody else holds; one that is born anew meanwhile is not expired.
WITH gone AS MATERIALIZED (
  SELECT task_id FROM {schema}.tasks
  WHERE expires_at <= ${nowOnce}
  ORDER BY expires_at LIMIT $1::int
  FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.tasks WHERE task_id = ANY(ARRAY(SELECT task_id FROM gone))
`);
