import type { LeasingTaskStore, TaskStore } from "@longjobs/core";

import { minimalRecord } from "../records.ts";

/** The methods that the traits are applied to, each with a call that would do something to `task-1`. */
export const storeMethods = {
  create: (store: TaskStore): Promise<unknown> => store.create(minimalRecord()),
  get: (store: TaskStore): Promise<unknown> => store.get("task-1"),
  update: (store: TaskStore): Promise<unknown> =>
    store.update("task-1", { statusMessage: "updated" }, minimalRecord().version),
  sweep: (store: TaskStore): Promise<unknown> => store.sweep(),
} as const;

/** The same for the optional capability to lease. */
export const leaseMethods = {
  claim: (store: LeasingTaskStore): Promise<unknown> => store.claim("claimer", 60_000, { limit: 1 }),
  renew: (store: LeasingTaskStore): Promise<unknown> =>
    store.renew([{ taskId: "task-1", token: "token-1" }], 60_000),
} as const;
