/*
 * What may leave the server. Every answer of every test goes through here: the published schemas, which are loose, and an
 * exact list of keys, which is not (P06).
 */
import {
  CallToolResultV2Schema,
  CancelTaskResultV2Schema,
  CreateTaskResultV2Schema,
  GetTaskResultV2Schema,
  InputRequestsV2Schema,
  TaskStatusNotificationV2Schema,
  UpdateTaskResultV2Schema,
} from "@modelcontextprotocol/ext-tasks/core/v2";
import { expect } from "vitest";

/** A JSON-RPC message that came from the server. */
export interface WireMessage {
  readonly jsonrpc: "2.0";
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: { readonly [key: string]: unknown };
  readonly result?: WireResult;
  readonly error?: WireError;
}

export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** Every field a result of ours may have; which of them are there depends on the method and the status. */
export interface WireResult {
  readonly resultType?: string;
  readonly taskId?: string;
  readonly status?: string;
  readonly statusMessage?: string;
  readonly createdAt?: string;
  readonly lastUpdatedAt?: string;
  readonly ttlMs?: number | null;
  readonly pollIntervalMs?: number;
  readonly inputRequests?: { readonly [key: string]: WireRequest };
  readonly requestState?: string;
  readonly result?: WireResult;
  readonly error?: WireError;
  readonly content?: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: { readonly [key: string]: unknown };
  readonly isError?: boolean;
}

export interface WireRequest {
  readonly method: string;
  readonly params?: { readonly message?: string; readonly [key: string]: unknown };
}

interface Schema {
  safeParse(value: unknown): { success: boolean; error?: unknown };
}

const taskKeys = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"];
const optionalTaskKeys = ["statusMessage", "pollIntervalMs"];
const payloadKeys: { readonly [status: string]: readonly string[] } = {
  working: [],
  input_required: ["inputRequests"],
  completed: ["result"],
  failed: ["error"],
  cancelled: [],
};

/** Fails unless `message` may be sent as an answer to `method`, in revision 2026-07-28. */
export function assertWire(method: string, message: WireMessage): void {
  assertNothingInternal(message);
  if (message.method !== undefined) return assertNotification(message);
  if (message.error !== undefined) {
    assertKeys(message, ["jsonrpc", "id", "error"]);
    return assertError(message.error);
  }
  assertKeys(message, ["jsonrpc", "id", "result"]);
  const result = message.result ?? {};
  if (method === "tools/call") assertCallResult(result);
  else if (method === "tasks/get") assertDetailedTask(result);
  else if (method === "tasks/update" || method === "tasks/cancel") {
    assertSchema(method === "tasks/update" ? UpdateTaskResultV2Schema : CancelTaskResultV2Schema, result);
    expect(result.resultType).toBe("complete");
    assertKeys(result, ["resultType"], ["_meta"]);
  }
}

const subscriptionIdKey = "io.modelcontextprotocol/subscriptionId";

/** Fails unless `message` may come on the stream of a subscription. */
export function assertSubscribed(message: WireMessage, id: string | number): void {
  assertNothingInternal(message);
  const meta = (message.result ?? message.params ?? {}) as {
    readonly _meta?: { readonly [key: string]: unknown };
  };
  expect(meta._meta?.[subscriptionIdKey], JSON.stringify(message)).toBe(id);
  if (message.method !== "notifications/tasks") return;
  assertSchema(TaskStatusNotificationV2Schema, message);
  assertKeys(message, ["jsonrpc", "method", "params"]);
  const { _meta, ...task } = message.params ?? {};
  assertKeys(_meta as object, [subscriptionIdKey]);
  assertDetailedTask({ resultType: "complete", ...task });
}

/** Fails unless a 2025-11-25 client may get this: no field of the extension reaches it. */
export function assertLegacyWire(method: string, message: WireMessage): void {
  assertNothingInternal(message);
  if (message.error !== undefined) return assertError(message.error);
  if (method === "tools/call" && message.result !== undefined) {
    if ("task" in message.result) return assertKeys(message.result, ["task"], ["_meta"]);
    assertKeys(message.result, ["content"], ["structuredContent", "isError", "_meta"]);
  }
}

function assertCallResult(result: WireResult): void {
  if (result.resultType === "task") {
    assertSchema(CreateTaskResultV2Schema, result);
    assertKeys(result, ["resultType", ...taskKeys], [...optionalTaskKeys, "_meta"]);
    assertTaskFields(result);
  } else if (result.resultType === "input_required") {
    assertSchema(InputRequestsV2Schema, result.inputRequests);
    assertKeys(result, ["resultType", "inputRequests", "requestState"], ["_meta"]);
  } else {
    expect(result.resultType).toBe("complete");
    assertToolResult(result);
  }
}

function assertToolResult(result: WireResult): void {
  assertSchema(CallToolResultV2Schema, result);
  assertKeys(result, ["resultType", "content"], ["structuredContent", "isError", "_meta"]);
}

function assertDetailedTask(result: WireResult): void {
  assertSchema(GetTaskResultV2Schema, result);
  expect(result.resultType).toBe("complete");
  const payload = payloadKeys[result.status ?? ""] ?? [];
  assertKeys(result, ["resultType", ...taskKeys, ...payload], [...optionalTaskKeys, "_meta"]);
  assertTaskFields(result);
  if (result.status === "completed") {
    expect(result.result?.resultType).toBe("complete");
    assertToolResult(result.result ?? {});
  }
  if (result.status === "failed") {
    assertError(result.error ?? { code: Number.NaN, message: "" });
    expect(result.statusMessage, "a failed task has a diagnosis").toBeTypeOf("string");
  }
  if (result.status === "input_required") assertSchema(InputRequestsV2Schema, result.inputRequests);
}

function assertTaskFields({
  createdAt = "",
  lastUpdatedAt = "",
  pollIntervalMs = 1,
  ttlMs,
}: WireResult): void {
  expect(new Date(createdAt).toISOString()).toBe(createdAt);
  expect(new Date(lastUpdatedAt).toISOString()).toBe(lastUpdatedAt);
  expect(lastUpdatedAt >= createdAt).toBe(true);
  expect(ttlMs === null || Number.isSafeInteger(ttlMs)).toBe(true);
  expect(Number.isSafeInteger(pollIntervalMs)).toBe(true);
}

function assertError(error: WireError): void {
  assertKeys(error, ["code", "message"], ["data"]);
  expect(Number.isSafeInteger(error.code)).toBe(true);
  expect(error.message).toBeTypeOf("string");
}

function assertNotification({ method, params }: WireMessage): void {
  expect(method, "no other notification is ours").toBe("notifications/progress");
  assertKeys(params ?? {}, ["progressToken", "progress"], ["total", "message", "_meta"]);
}

/** No stack, no field of a record that is not for clients, no file of this machine. */
function assertNothingInternal(message: WireMessage): void {
  const text = JSON.stringify(message, (key, value: unknown) =>
    /(?:^|\/)serverInfo$/.test(key) ? undefined : value,
  );
  expect(text).not.toMatch(/\\n\s+at |node_modules|\.[cm]?[jt]s:\d+/);
  expect(text).not.toMatch(/"(?:version|lease|finishedBy|fingerprint|retentionMs|work|inputs)":/);
}

function assertSchema(schema: Schema, value: unknown): void {
  const parsed = schema.safeParse(value);
  expect(parsed.error, JSON.stringify(value)).toBeUndefined();
}

function assertKeys(value: object, required: readonly string[], optional: readonly string[] = []): void {
  const keys = Object.keys(value);
  expect(keys).toEqual(expect.arrayContaining([...required]));
  expect(keys.filter((key) => !required.includes(key) && !optional.includes(key))).toEqual([]);
}
