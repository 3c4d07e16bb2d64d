import { isExclusive, type ExclusiveTaskStore, type TaskStore } from "../../src/index.ts";

/** A store without optional capabilities, over another one: it gives no hints of changes. */
export function fiveMethods(store: TaskStore): TaskStore {
  const bare: TaskStore & Partial<ExclusiveTaskStore> = {
    create: (record) => store.create(record),
    get: (taskId) => store.get(taskId),
    update: (taskId, patch, expectedVersion) => store.update(taskId, patch, expectedVersion),
    sweep: () => store.sweep(),
    close: () => store.close(),
    ...(isExclusive(store) ? { exclusive: true as const } : {}),
  };
  return bare;
}
