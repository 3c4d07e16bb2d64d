import { TASKS_EXTENSION_ID } from "@longjobs/core";

/** A JSON-RPC id: on a subscription it is the id of the subscription too. */
export type RequestId = string | number;

/** A `subscriptions/listen` request that names tasks. */
export interface TaskListen {
  readonly id: RequestId;
  /** As it came. */
  readonly taskIds: unknown;
  readonly declaresTasks: boolean;
  /** The `_meta` of the request, the protocol's own entries aside. */
  readonly meta: { readonly [key: string]: unknown };
  /** The request for the SDK's own route: everything but the tasks. */
  readonly rest: object;
}

interface ListenParams {
  readonly _meta?: unknown;
  readonly notifications?: unknown;
}

const listenMethod = "subscriptions/listen";
const protocolPrefix = "io.modelcontextprotocol/";

/** Whether a POST says of itself that it is a listen request: the SDK refuses one without the header, or with another one. */
export function mayListen(request: Request): boolean {
  return request.method === "POST" && request.headers.get("mcp-method") === listenMethod;
}

/** The request as one that names tasks, or `undefined` for everything else. The SDK's own route judges the rest of it. */
export function readTaskListen(message: unknown): TaskListen | undefined {
  if (!isObject(message) || message["method"] !== listenMethod) return undefined;
  const { id, params } = message as { readonly id?: unknown; readonly params?: ListenParams };
  if (typeof id !== "string" && typeof id !== "number") return undefined;
  const notifications = isObject(params) ? params["notifications"] : undefined;
  if (!isObject(notifications) || !Object.hasOwn(notifications, "taskIds")) return undefined;
  const { taskIds, ...others } = notifications;
  const envelope = isObject(params?._meta) ? params._meta : {};
  return {
    id,
    taskIds,
    declaresTasks: declaresTasks(envelope[`${protocolPrefix}clientCapabilities`]),
    meta: Object.fromEntries(Object.entries(envelope).filter(([key]) => !key.startsWith(protocolPrefix))),
    rest: { ...message, params: { ...params, notifications: others } },
  };
}

/** By this very request alone (spec "Capability Negotiation"). */
function declaresTasks(capabilities: unknown): boolean {
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  return isObject(extensions) && Object.hasOwn(extensions, TASKS_EXTENSION_ID);
}

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
