import { defineStatement, type Statement } from "../statement.ts";

/*
 * Never changed once it was released: a later migration changes what it made.
 *
 * `bytes` is the length of the record's JSON text, kept by the server, so that a write which names three fields can
 * hold the limit of the whole. `fillfactor` leaves room in each page for the next version of a row, so that a progress
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
  expires_at timestamptz NOT NULL DEFAULT 'infinity',
  bytes integer GENERATED ALWAYS AS (
    24 + octet_length(task_id) + octet_length(version::text)
    + octet_length(status) + 12
    + coalesce(octet_length(status_message) + 17, 0)
    + coalesce(octet_length(created_at) + 13, 0)
    + coalesce(octet_length(last_updated_at) + 17, 0)
    + coalesce(octet_length(ttl_ms) + 9, 0)
    + coalesce(octet_length(poll_interval_ms) + 18, 0)
    + coalesce(octet_length(result) + 10, 0)
    + coalesce(octet_length(error) + 9, 0)
    + coalesce(octet_length(scope) + 9, 0)
    + coalesce(octet_length(work) + 8, 0)
    + coalesce(octet_length(inputs) + 10, 0)
    + coalesce(octet_length(checkpoint) + 14, 0)
    + coalesce(octet_length(progress) + 12, 0)
    + coalesce(octet_length(cancel_requested_at) + 21, 0)
    + coalesce(octet_length(lease) + 9, 0)
    + coalesce(octet_length(attempt) + 11, 0)
    + coalesce(octet_length(crashes) + 11, 0)
    + coalesce(octet_length(finished_by) + 14, 0)
    + coalesce(octet_length(retention_ms) + 15, 0)
    + coalesce(octet_length(idempotency) + 15, 0)
    + coalesce(octet_length(kind) + 8, 0)
    + coalesce(octet_length(data) + 8, 0)
    + coalesce(octet_length(others::text), 0)
  ) STORED
) WITH (fillfactor = 80, toast_tuple_target = 512, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX tasks_claimable ON {schema}.tasks (lease_ends_at)
  WHERE kind IS NULL AND status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX tasks_expiring ON {schema}.tasks (expires_at)
`);
