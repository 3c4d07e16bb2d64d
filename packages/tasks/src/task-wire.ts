import type { DetailedTask, JsonObject, TaskView } from "@longjobs/core";

/** `CreateTaskResult` of revision 2026-07-28: flat, the task fields and the discriminator. */
export function toCreateTaskResult(view: TaskView): JsonObject {
  return { resultType: "task", ...view };
}

/** `GetTaskResult` of revision 2026-07-28. */
export function toGetTaskResult(task: DetailedTask): JsonObject {
  return { resultType: "complete", ...toWireTask(task) };
}

/** `notifications/tasks` of revision 2026-07-28: "identical to what `tasks/get` would have returned at that moment". */
export function toTaskNotification(task: DetailedTask, subscriptionId: string | number): JsonObject {
  return {
    jsonrpc: "2.0",
    method: "notifications/tasks",
    params: { ...toWireTask(task), _meta: { "io.modelcontextprotocol/subscriptionId": subscriptionId } },
  };
}

/** The inlined result of a completed task is a result of its own and carries its own `resultType`: clients validate it as one. */
function toWireTask(task: DetailedTask): JsonObject {
  return task.status === "completed"
    ? { ...task, result: { ...task.result, resultType: "complete" } }
    : { ...task };
}

/** The empty acknowledgement of `tasks/update` and `tasks/cancel`. */
export const acknowledgement: JsonObject = Object.freeze({ resultType: "complete" });
