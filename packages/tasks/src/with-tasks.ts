import type { TaskStore } from "@longjobs/core";
import { createTasks, type AttachableServer, type Tasks, type TasksOptions } from "./create-tasks.ts";

const usedStores = new WeakSet<TaskStore>();

/**
 * {@link createTasks} and `attach` in one, for a process with one server.
 *
 * @throws Error for a second call with the same store: two engines would not know of each other's handlers.
 */
export function withTasks(server: AttachableServer, options: TasksOptions): Tasks {
  if (usedStores.has(options.store)) {
    throw new Error(
      "withTasks was called twice with one store. For several servers write: " +
        "const tasks = createTasks({ store }); then tasks.attach(server) for each of them.",
    );
  }
  const tasks = createTasks(options);
  tasks.attach(server);
  usedStores.add(options.store);
  return tasks;
}
