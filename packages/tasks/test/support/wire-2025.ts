/*
 * What may be sent to a client of revision 2025-11-25: the published schemas of that revision, which are loose, and an exact
 * list of keys, which is not. No field of the Tasks extension may be among them.
 */
import {
  CallToolResultV1Schema,
  CancelTaskResultV1Schema,
  CreateTaskResultV1Schema,
  GetTaskResultV1Schema,
  TaskStatusNotificationV1Schema,
  ToolV1Schema,
} from "@modelcontextprotocol/ext-tasks/core/v1";
import {
  CallToolResultSchema,
  CancelTaskResultSchema,
  CreateTaskResultSchema,
  GetTaskResultSchema,
  ListToolsResultSchema,
  TaskStatusNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { expect } from "vitest";

export const relatedTask = "io.modelcontextprotocol/related-task";
export const immediateResponse = "io.modelcontextprotocol/model-immediate-response";

interface Schema {
  safeParse(value: unknown): { success: boolean; error?: unknown };
}

/** A message on its way to a client. */
export interface Message2025 {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Params;
  readonly result?: Params;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

type Params = { readonly [name: string]: unknown };

const taskKeys = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl"];
const optionalTaskKeys = ["statusMessage", "pollInterval"];

/** Fails unless the answer to `method`, or a message of the server's own, may be sent. `repeatable`: the call had a key. */
export function assertWire2025(
  method: string | undefined,
  message: Message2025,
  { repeatable = false }: { readonly repeatable?: boolean } = {},
): void {
  // The SDK's own answer.
  if (method === "initialize") return;
  const text = JSON.stringify(message);
  expect(text).not.toMatch(/"(?:ttlMs|pollIntervalMs|resultType|inputRequests|requestState)":/);
  expect(text).not.toMatch(/"(?:version|lease|finishedBy|fingerprint|retentionMs|work|inputs)":/);
  expect(text).not.toMatch(/\\n\s+at |node_modules/);
  if (message.method !== undefined) return assertOwn(message.method, message.params ?? {});
  if (message.error !== undefined) return expect(Number.isSafeInteger(message.error.code)).toBe(true);
  const result = message.result ?? {};
  if (method === "tools/list") assertList(result);
  else if (method === "tools/call" && result["task"] !== undefined) assertCreated(result, repeatable);
  else if (method === "tools/call" || method === "tasks/result") assertCallResult(result);
  if (method === "tasks/result")
    expect(result["_meta"]).toMatchObject({ [relatedTask]: { taskId: expect.any(String) as unknown } });
  if (method === "tasks/get" || method === "tasks/cancel") {
    fits(method === "tasks/get" ? GetTaskResultV1Schema : CancelTaskResultV1Schema, result);
    fits(method === "tasks/get" ? GetTaskResultSchema : CancelTaskResultSchema, result);
    assertTask(result);
  }
}

function assertOwn(method: string, params: Params): void {
  if (method === "notifications/tasks/status") {
    fits(TaskStatusNotificationV1Schema, { method, params });
    fits(TaskStatusNotificationSchema, { method, params });
    return assertTask(params);
  }
  if (method === "elicitation/create" && params["mode"] === "url")
    expect(params["elicitationId"]).toBeTypeOf("string");
}

function assertList(result: Params): void {
  fits(ListToolsResultSchema, result);
  for (const tool of result["tools"] as readonly unknown[]) fits(ToolV1Schema, tool);
}

function assertCallResult(result: Params): void {
  fits(CallToolResultV1Schema, result);
  fits(CallToolResultSchema, result);
  hasKeys(result, ["content"], ["structuredContent", "isError", "_meta"]);
}

function assertCreated(result: Params, repeatable: boolean): void {
  fits(CreateTaskResultV1Schema, result);
  fits(CreateTaskResultSchema, result);
  hasKeys(result, ["task"], ["_meta"]);
  if (result["_meta"] !== undefined)
    expect(result["_meta"]).toEqual({ [immediateResponse]: expect.any(String) as unknown });
  const task = result["task"] as Params;
  if (!repeatable) expect(task["status"], "a task begins as working").toBe("working");
  assertTask(task);
}

function assertTask({ _meta, ...task }: Params): void {
  // An empty one is of the SDK's own machinery.
  expect(_meta ?? {}).toEqual({});
  hasKeys(task, taskKeys, optionalTaskKeys);
  for (const name of ["createdAt", "lastUpdatedAt"])
    expect(new Date(task[name] as string).toISOString()).toBe(task[name]);
  expect(task["ttl"] === null || Number.isSafeInteger(task["ttl"])).toBe(true);
  if (task["status"] === "failed") expect(task["statusMessage"]).toBeTypeOf("string");
}

function fits(schema: Schema, value: unknown): void {
  expect(schema.safeParse(value).error, JSON.stringify(value)).toBeUndefined();
}

function hasKeys(value: object, required: readonly string[], optional: readonly string[] = []): void {
  const keys = Object.keys(value);
  expect(keys).toEqual(expect.arrayContaining([...required]));
  expect(keys.filter((key) => !required.includes(key) && !optional.includes(key))).toEqual([]);
}
