// Run by a test, and shown in the guide.
import type { TaskStore } from "@longjobs/core";
// #region choose
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks, type Tasks } from "@longjobs/tasks";
import type { Redis } from "ioredis";
import type { Pool } from "pg";

/** One process, one disk. */
export const onDisk = (dir: string): Promise<TaskStore> => WalTaskStore.open({ dir });
/** Any number of processes. Call `migrate()` before the first use. */
export const onPostgres = (pool: Pool): PostgresTaskStore => new PostgresTaskStore({ pool });
/** Any number of processes. */
export const onRedis = (client: Redis): TaskStore => new RedisTaskStore({ client });

/** The rest of your server does not know which it is. */
export const tasksOn = (store: TaskStore): Tasks => createTasks({ store });
// #endregion
