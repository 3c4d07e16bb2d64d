import type { JsonObject, JsonValue } from "./json.ts";

/** The name of the MCP Tasks extension, as clients and servers declare it. */
export const TASKS_EXTENSION_ID = "io.modelcontextprotocol/tasks";

/** The five statuses of the Tasks extension. `working` and `input_required` alternate; nothing leaves the others. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** The JSON-RPC error of a `failed` task. */
export type TaskError = {
  /** An integer JSON-RPC error code. */
  readonly code: number;
  readonly message: string;
  readonly data?: JsonValue;
};

/** A server-to-client question: an MCP elicitation, sampling or roots request. */
export type InputRequest = {
  readonly method: string;
  readonly params?: JsonObject;
};

/** What the client sent for one {@link InputRequest}. */
export type InputResponse = JsonObject;

/** One entry of the durable inbox, stored under its wire key. */
export type InboxEntry = {
  /** SHA-256 of the canonical request: the same key with another request is refused. */
  readonly fingerprint: string;
  readonly request?: InputRequest;
  readonly answer?: InputResponse;
  readonly state: "open" | "answered" | "withdrawn" | "superseded";
  /** The attempt that asked. */
  readonly attempt: number;
  /** On a question that was asked again: the handler's own key, which the first question has as its wire key. */
  readonly replaces?: string;
  /** On an answered entry without an answer: why the last of too many bad answers was refused. */
  readonly invalid?: string;
};

/** The time-limited right to write as the owner of a task. */
export type Lease = {
  /** The engine instance that runs the attempt. */
  readonly owner: string;
  /** Random, fresh for each acquisition. */
  readonly token: string;
  readonly durationMs: number;
};

/** What is needed to run a handler again, and what its client declared. */
export type TaskWork = {
  readonly tool: string;
  /** Dropped when the task becomes terminal. */
  readonly arguments?: JsonValue;
  /** Present when the arguments are what the handler gets as they are; else the tool's schema is applied to them first. */
  readonly prepared?: true;
  readonly client?: TaskClient;
};

/** The client side of the call that made a task. */
export type TaskClient = {
  /** The protocol era the call was made in, such as `"2026-07-28"`. */
  readonly era?: string;
  /** The client capabilities which that very call declared. */
  readonly capabilities?: JsonObject;
};

/** How far a handler has come. */
export type TaskProgress = {
  readonly message?: string;
  readonly done?: number;
  readonly total?: number;
};

/** A handler's resume cursor. */
export type TaskCheckpoint = {
  readonly value: JsonValue;
  /** How often each question of `ask` had been asked when the checkpoint was written. */
  readonly asked: { readonly [question: string]: number };
};

/**
 * What a store keeps for one task. A store interprets `taskId`, `version`, `status`, `ttlMs`, `lease` and
 * `work.tool`; the rest it gives back as it came.
 */
export type TaskRecord = {
  readonly taskId: string;
  /** Compare-and-swap counter. Starts at a random 31-bit number; every update adds exactly one. */
  readonly version: number;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601; never goes back. */
  readonly lastUpdatedAt: string;
  /** Milliseconds from creation until the task expires; `null` means never. */
  readonly ttlMs: number | null;
  readonly pollIntervalMs?: number;
  /** Present when, and only when, `status` is `completed`. */
  readonly result?: JsonObject;
  /** Present when, and only when, `status` is `failed`. */
  readonly error?: TaskError;

  readonly scope?: string;
  readonly work?: TaskWork;
  readonly inputs?: { readonly [wireKey: string]: InboxEntry };
  readonly checkpoint?: TaskCheckpoint;
  readonly progress?: TaskProgress;
  /** ISO 8601: the durable intent to cancel. */
  readonly cancelRequestedAt?: string;
  /** Absent on a terminal record. */
  readonly lease?: Lease;
  /** Runs begun. */
  readonly attempt: number;
  /** Leases that lapsed after a run began. */
  readonly crashes: number;
  /** Present while no run is under way that could crash: its lease was given back, or a worker has not come yet. */
  readonly released?: true;
  /** The lease token of the attempt that wrote the terminal state. */
  readonly finishedBy?: string;
  /** Milliseconds that a finished task stays readable; `null` means for ever. */
  readonly retentionMs: number | null;
  readonly idempotency?: { readonly fingerprint: string };
  /** Absent for tasks; other kinds of record look unknown to every task call. */
  readonly kind?: string;
  /** The state of a record whose `kind` is set. */
  readonly data?: JsonValue;
};

/** True for `completed`, `failed` and `cancelled`. */
export function isTerminal(status: TaskStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
