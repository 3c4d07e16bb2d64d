import type { TaskStore } from "@longjobs/core";

/** The five methods of a store and nothing else: no capability, no mark, no class. */
export function onlyFiveMethods(store: TaskStore): TaskStore {
  return {
    create: (record) => store.create(record),
    get: (taskId) => store.get(taskId),
    update: (taskId, patch, expectedVersion) => store.update(taskId, patch, expectedVersion),
    sweep: () => store.sweep(),
    close: () => store.close(),
  };
}
