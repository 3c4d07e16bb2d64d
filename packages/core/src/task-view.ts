import type { JsonObject, JsonValue } from "./json.ts";
import type { InputRequest, TaskError, TaskRecord, TaskStatus } from "./task-record.ts";

/** The task fields of a handle: never a payload. */
export type TaskView = {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number | null;
  readonly pollIntervalMs?: number;
};

type ViewOf<Status extends TaskStatus> = Omit<TaskView, "status"> & { readonly status: Status };

/** What polling and push show: the task fields and the payload of its status. */
export type DetailedTask =
  | ViewOf<"working">
  | (ViewOf<"input_required"> & { readonly inputRequests: { readonly [wireKey: string]: InputRequest } })
  | (ViewOf<"completed"> & { readonly result: JsonObject })
  | (ViewOf<"failed"> & { readonly error: TaskError })
  | ViewOf<"cancelled">;

/** A task as revision 2025-11-25 shows it. */
export type Task2025 = {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttl: number | null;
  readonly pollInterval?: number;
};

/** The handle of a task, for `CreateTaskResult`: built by allow-list, so that no internal field reaches the wire. */
export function toTaskView(record: TaskRecord): TaskView {
  return {
    taskId: record.taskId,
    status: record.status,
    ...(record.statusMessage === undefined ? {} : { statusMessage: record.statusMessage }),
    createdAt: record.createdAt,
    lastUpdatedAt: record.lastUpdatedAt,
    ttlMs: record.ttlMs,
    ...(record.pollIntervalMs === undefined ? {} : { pollIntervalMs: record.pollIntervalMs }),
  };
}

/** The detailed task, for polling and push alike. Payloads are shared with the record, frozen, never copied. */
export function toDetailedTask(record: TaskRecord): DetailedTask {
  const view = toTaskView(record);
  switch (record.status) {
    case "working":
    case "cancelled":
      return { ...view, status: record.status };
    case "input_required":
      return { ...view, status: record.status, inputRequests: openRequests(record) };
    case "completed":
      return { ...view, status: record.status, result: payload(record.result, record) };
    case "failed":
      return { ...view, status: record.status, error: payload(record.error, record) };
  }
}

/**
 * The task of revision 2025-11-25, whose results are fetched apart. There a tool error is a failure (spec "Result
 * Handling": with `isError` "the task should reach `failed` status"), and its text the diagnosis.
 */
export function toTask2025(task: TaskView & { readonly result?: JsonObject }): Task2025 {
  const isToolError = task.result?.["isError"] === true;
  const statusMessage = isToolError ? errorText(task.result) : task.statusMessage;
  return {
    taskId: task.taskId,
    status: isToolError ? "failed" : task.status,
    ...(statusMessage === undefined ? {} : { statusMessage }),
    createdAt: task.createdAt,
    lastUpdatedAt: task.lastUpdatedAt,
    ttl: task.ttlMs,
    ...(task.pollIntervalMs === undefined ? {} : { pollInterval: task.pollIntervalMs }),
  };
}

/** A status is a line for people: the whole text is in the result. */
const maxErrorText = 500;

function errorText(result: JsonObject | undefined): string {
  const content = (result?.["content"] ?? []) as readonly { readonly text?: unknown }[];
  const words = content.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
  if (words === "") return "The tool reported an error.";
  return words.length <= maxErrorText ? words : `${words.slice(0, maxErrorText - 1)}…`;
}

function openRequests(record: TaskRecord): { readonly [wireKey: string]: InputRequest } {
  const open: [string, InputRequest][] = [];
  for (const [wireKey, entry] of Object.entries(record.inputs ?? {})) {
    if (entry.state === "open" && entry.request !== undefined) open.push([wireKey, entry.request]);
  }
  return Object.fromEntries(open);
}

/** Status and payload are written together (C14); a record without its payload was made by something else. */
function payload<Value extends JsonValue | TaskError>(value: Value | undefined, record: TaskRecord): Value {
  if (value === undefined)
    throw new TypeError(`Task ${record.taskId} is ${record.status} without its payload.`);
  return value;
}
