import { isObject, type RequestId } from "./listen-request.ts";

/** Names the subscription on every message of its stream. */
export const subscriptionIdKey = "io.modelcontextprotocol/subscriptionId";

/** The SDK's acknowledgement of a subscription. */
export interface Acknowledgement {
  readonly params: { readonly notifications?: object };
}

/** Whether this is the SDK's acknowledgement of the subscription. */
export function isAcknowledgement(message: unknown, id: RequestId): message is Acknowledgement {
  return (
    isObject(message) &&
    message["method"] === "notifications/subscriptions/acknowledged" &&
    subscriptionIdOf(message) === id
  );
}

/** Whether the SDK itself tells nothing on this subscription. */
export function honorsNothing({ params: { notifications } }: Acknowledgement): boolean {
  return Object.keys(notifications ?? {}).length === 0;
}

/** The subscription that a notification belongs to. */
export function subscriptionIdOf(message: unknown): unknown {
  const params = isObject(message) ? message["params"] : undefined;
  const meta = isObject(params) ? params["_meta"] : undefined;
  return isObject(meta) ? meta[subscriptionIdKey] : undefined;
}

/** Whether this answers the listen request: with an error, or with the end of the subscription. */
export function isAnswerTo(message: unknown, id: RequestId): boolean {
  return isObject(message) && !Object.hasOwn(message, "method") && message["id"] === id;
}

/** Spec "Task Status Notifications": "the list of task IDs it has agreed to send task status notifications for". */
export function acknowledgeTasks(acknowledgement: Acknowledgement, taskIds: readonly string[]): object {
  const { params } = acknowledgement;
  return { ...acknowledgement, params: { ...params, notifications: { ...params.notifications, taskIds } } };
}

/** Spec "Graceful Closure": the answer to the listen request, when the server ends the subscription. */
export function endOfSubscription(id: RequestId): object {
  return { jsonrpc: "2.0", id, result: { resultType: "complete", _meta: { [subscriptionIdKey]: id } } };
}

/** The listen request is refused. */
export function refusedListen(id: RequestId, told: Error): object {
  const { code, message, data } = told as Error & { readonly code?: number; readonly data?: unknown };
  return { jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}

/** Ends a subscription from the other side: of the client over stdio, and of the SDK. */
export function cancelledListen(requestId: RequestId): object {
  return { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
}
