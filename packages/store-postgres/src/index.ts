// Everything listed here is public API.
export { PostgresTaskStore } from "./postgres-task-store.ts";

export type {
  PostgresConnection,
  PostgresListenClient,
  PostgresNotification,
  PostgresPool,
  PostgresQueryable,
  PostgresResult,
  PostgresStatement,
} from "./client.ts";
export type { TransactionDoor } from "./create-in-transaction.ts";
export type { PostgresTaskStoreOptions } from "./options.ts";
