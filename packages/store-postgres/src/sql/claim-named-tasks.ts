import { claimFree } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

export const claimNamedTasks: Statement = defineStatement(`
-- claim-named-tasks: give a lease to those of the named tasks that are open and that nobody holds.
-- $1 lease up to its token   $2 lease after its token   $3 lease, ms   $4 the most to take   $5 tools, or NULL for any   $6 task ids
-- Returns: a row {record, others} for each task taken, as it is now
-- Atomic: all or nothing. Touches: rows of tasks that nobody else is writing.
${claimFree("AND task_id = ANY($6::text[])")}
`);
