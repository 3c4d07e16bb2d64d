// Compiled by `tsc -p test/tsconfig.json`, never run: what must compile, and what must not.
import type { LeasingTaskStore, TaskRecord, TaskStore, WatchableTaskStore } from "@longjobs/core";
import { Client, Pool } from "pg";
import { expectTypeOf } from "vitest";
import {
  PostgresTaskStore,
  type PostgresListenClient,
  type PostgresPool,
  type PostgresQueryable,
} from "../src/index.ts";

declare const pool: Pool;
declare const record: TaskRecord;

export function whatPgGivesFits(): void {
  expectTypeOf<Pool>().toExtend<PostgresPool>();
  expectTypeOf<Client>().toExtend<PostgresListenClient>();
  expectTypeOf<Client>().toExtend<PostgresQueryable>();
  const store = new PostgresTaskStore({ pool, schema: "jobs", listen: () => new Client() });
  expectTypeOf(store).toExtend<TaskStore & WatchableTaskStore & LeasingTaskStore>();
  void new PostgresTaskStore({ pool: new Pool(), listen: async () => new Client(), deadlineMs: undefined });
}

export async function transactions(store: PostgresTaskStore): Promise<void> {
  const client = await pool.connect();
  await store.inTransaction(client).create(record);
  // @ts-expect-error -- a transaction can only create
  await store.inTransaction(client).update("task-1", {}, 1);
}

export function whatDoesNotFit(): void {
  // @ts-expect-error -- a pool is needed
  void new PostgresTaskStore({});
  // @ts-expect-error -- a client cannot be connected twice: give what makes one
  void new PostgresTaskStore({ pool, listen: new Client() });
  // @ts-expect-error -- a connection string is no pool
  void new PostgresTaskStore({ pool: "postgres://127.0.0.1/postgres" });
}
