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
