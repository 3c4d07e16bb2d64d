import { defineStatement, type Statement } from "./statement.ts";

export const notify: Statement = defineStatement(`
-- notify: tell listeners of a channel, in one transaction of its own.
-- $1 channel   $2 payloads
-- Returns: a row for each payload
-- Atomic: all or nothing. Touches: nothing that is kept.
SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload
`);
