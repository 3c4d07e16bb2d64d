import type { DetailedTask, JsonObject, TaskView } from "@longjobs/core";

/** `CreateTaskResult` of revision 2026-07-28: flat, the task fields and the discriminator. */
export function toCreateTaskResult(view: TaskView): JsonObject {
  return { resultType: "task", ...view };
}

/**
 * `GetTaskResult` of revision 2026-07-28. The inlined result of a completed task is a result of its own and
 * carries its own `resultType`: clients validate it as one.
 */
export function toGetTaskResult(task: DetailedTask): JsonObject {
  if (task.status !== "completed") return { resultType: "complete", ...task };
  return { resultType: "complete", ...task, result: { ...task.result, resultType: "complete" } };
}

/** The empty acknowledgement of `tasks/update` and `tasks/cancel`. */
export const acknowledgement: JsonObject = Object.freeze({ resultType: "complete" });
