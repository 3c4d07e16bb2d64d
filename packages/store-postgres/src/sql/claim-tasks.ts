import { claimFree } from "./fragments.ts";
import { defineStatement, type Statement } from "./statement.ts";

export const claimTasks: Statement = defineStatement(`
-- claim-tasks: give a lease to open tasks that nobody holds, the longest free first.
-- $1 lease up to its token   $2 lease after its token   $3 lease, ms   $4 the most to take   $5 tools, or NULL for any
-- Returns: a row {record, others} for each task taken, as it is now
-- Atomic: all or nothing. Touches: rows of tasks that nobody else is writing.
${claimFree("")}
`);
