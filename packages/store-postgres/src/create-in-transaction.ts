import { storeErrors, type TaskRecord } from "@longjobs/core";
import type { PostgresQueryable } from "./client.ts";
import { encodeRecord } from "./encode-record.ts";
import type { StatementRunner } from "./run-statement.ts";
import { createTask } from "./sql/create-task.ts";

/** Creates tasks in a transaction of yours. */
export interface TransactionDoor {
  /**
   * Creates a task that exists if, and only if, your transaction commits. Nobody sees it before, so that no work
   * begins: the record has no lease, and after the commit any instance that has the tool may claim it.
   *
   * Rejects as `create` of the store does; `task_exists` leaves your transaction as it is. After any other error of the
   * server Postgres undoes your transaction: repeat it as a whole.
   */
  create(record: TaskRecord): Promise<void>;
}

/** A door into the transaction that `client` has open. */
export function openTransactionDoor(
  client: PostgresQueryable,
  runner: StatementRunner,
  maxRecordBytes: number,
): TransactionDoor {
  return {
    create: async (record) => {
      if (record.lease !== undefined) {
        throw new TypeError("A task of a transaction has no lease: its work starts after the commit.");
      }
      const { values } = encodeRecord(record, maxRecordBytes);
      const { rowCount } = await runner.runOn(client, createTask, values);
      if (rowCount !== 1) throw storeErrors.taskExists(record.taskId);
    },
  };
}
