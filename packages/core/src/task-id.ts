/** What an id on the wire looks like. Reserved records use ids outside of it, so that no client can name them. */
const wireTaskId = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** True for an id that a client may send; anything else is answered like an unknown task, without a store call. */
export function isTaskId(taskId: unknown): taskId is string {
  return typeof taskId === "string" && wireTaskId.test(taskId);
}
