import type { TaskStore } from "@longjobs/core";
import { createTasks, type Tasks } from "@longjobs/tasks";

export function registerByFallback(tasks: Tasks, render: () => Promise<string>): void {
  // #region fallback
  tasks.taskTool("render", { fallback: "tools" }, async () => ({
    content: [{ type: "text", text: await render() }],
  }));
  tasks.taskTool("render_now", { fallback: "wait" }, async () => ({
    content: [{ type: "text", text: await render() }],
  }));
  tasks.taskTool("render_later", { taskSupport: "required" }, async () => ({
    content: [{ type: "text", text: await render() }],
  }));
  // #endregion
}

export function createNamedTasks(store: TaskStore): Tasks {
  // #region names
  const tasks = createTasks({
    store,
    fallbackTools: {
      prefix: "render_job",
      maxWaitSeconds: 50,
      descriptions: { cancel: "Stops a rendering. Use it only when the user no longer wants the picture." },
    },
  });
  // #endregion
  return tasks;
}
