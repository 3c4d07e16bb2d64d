import { defineStatement, type Statement } from "../statement.ts";

/*
 * Never changed once it was released: a later migration changes what it made.
 *
 * `fillfactor` leaves room in each page for the next version of a row, so that a progress
 * update moves no index entry; `toast_tuple_target` moves large values out of the row sooner than usual, so that
 * it does not copy them.
 */
export const tasks: Statement = defineStatement(`
-- create-tables: the table of the tasks, and the ways into it.
-- Returns: nothing
-- Atomic: with the migration that it is part of. Touches: the schema.
CREATE TABLE {schema}.tasks (
  task_id text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  status text NOT NULL,
  status_message text,
  created_at text,
  last_updated_at text,
  ttl_ms text,
  poll_interval_ms text,
  result text,
  error text,
  scope text,
  work text,
  inputs text,
  checkpoint text,
  progress text,
  cancel_requested_at text,
  lease text,
  attempt text,
  crashes text,
  finished_by text,
  retention_ms text,
  idempotency text,
  kind text,
  data text,
  others jsonb,
  tool text,
  lease_token text,
  lease_ends_at timestamptz NOT NULL DEFAULT '-infinity',
  born_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL DEFAULT 'infinity'
) WITH (fillfactor = 80, toast_tuple_target = 512, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX tasks_claimable ON {schema}.tasks (lease_ends_at)
  WHERE kind IS NULL AND status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX tasks_expiring ON {schema}.tasks (expires_at)
`);
