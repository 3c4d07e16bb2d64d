import { nowOnce } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

export const findVersions: Statement = defineStatement(`
-- find-versions: at which versions tasks are now, without their payloads.
-- $1 task ids
-- Returns: a row {task_id, version} for each task that is there; no row: unknown or expired
-- Atomic: one read. Touches: nothing.
SELECT task_id, version::text AS version
FROM {schema}.tasks
WHERE task_id = ANY($1::text[]) AND expires_at > ${nowOnce}
`);
