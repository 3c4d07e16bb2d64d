import type { JsonObject, JsonValue } from "./json.ts";
import { isLongJobsError, type LongJobsError } from "./longjobs-error.ts";
import { normalizeJson, normalizeJsonObject, type JsonLimits } from "./normalize-json.ts";
import type { TaskError } from "./task-record.ts";

/** What becomes of a task when its handler is done. */
export type Outcome =
  | { readonly status: "completed"; readonly result: JsonObject }
  | { readonly status: "failed"; readonly error: TaskError }
  | { readonly status: "cancelled" }
  /** Nothing is written: somebody else owns the task now, or nobody can reach it. */
  | { readonly status: "abandoned"; readonly reason: unknown };

/**
 * The outcome of a handler that rejected with `error`, given why its signal was aborted, if it was.
 *
 * After `cancelled` the task is cancelled, and after `request_cancelled` too: nobody could reach the work. After
 * `shutdown`, `lease_lost` and `expired` nothing is written; a protocol error fails the task with its code ({@link isProtocolError}); anything else is a
 * tool error, which the spec counts as completed (Task Status: "This includes tool calls that returned
 * results with `isError: true`").
 */
export function rejectedOutcome(error: unknown, abortReason: unknown, limits: JsonLimits): Outcome {
  if (isLongJobsError(abortReason, "cancelled") || isLongJobsError(abortReason, "request_cancelled")) {
    return { status: "cancelled" };
  }
  if (isLongJobsError(abortReason, "deadline_exceeded")) {
    return {
      status: "failed",
      error: { code: -32603, message: abortReason.message, data: abortReason.toJSON() },
    };
  }
  if (abortReason !== undefined) return { status: "abandoned", reason: abortReason };
  return failedOutcome(error, limits) ?? { status: "completed", result: toToolError(error, limits) };
}

function failedOutcome(error: unknown, limits: JsonLimits): Outcome | undefined {
  try {
    if (!isProtocolError(error)) return undefined;
    const { code, data } = error as { code: number; data?: unknown };
    return { status: "failed", error: toTaskError({ code, message: messageOf(error), data }, limits) };
  } catch {
    // Reading the error throws, so it is no protocol error; it becomes a tool error.
    return undefined;
  }
}

/** JSON-RPC 2.0 keeps these for the protocol; those of MCP are among them. */
const protocolCodes = { lowest: -32_768, highest: -32_000 } as const;

/** What the SDKs call theirs, v1 and v2; their codes may be an application's own. */
const protocolErrorNames: ReadonlySet<unknown> = new Set(["McpError", "ProtocolError"]);

/**
 * A JSON-RPC error, whichever library it came from: an integer `code` of its own that JSON-RPC keeps for the protocol, or
 * any integer on an error class of an SDK. Other numbers are no protocol codes: programs, databases and HTTP
 * clients number their failures too, and a failed child process is a failed tool.
 */
export function isProtocolError(
  error: unknown,
): error is { readonly code: number; readonly message?: unknown } {
  if (typeof error !== "object" || error === null || !Object.hasOwn(error, "code")) return false;
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  if (!Number.isSafeInteger(code)) return false;
  const isKept = protocolCodes.lowest <= (code as number) && (code as number) <= protocolCodes.highest;
  return isKept || protocolErrorNames.has(name);
}

/**
 * The stored form of a JSON-RPC error. Data that JSON cannot hold is left out and said to be: the code and
 * the message must survive it.
 *
 * @throws TypeError unless `code` is an integer and `message` a string.
 */
export function toTaskError(error: unknown, limits: JsonLimits): TaskError {
  const { code, message, data } = (error ?? {}) as { code?: unknown; message?: unknown; data?: unknown };
  if (!Number.isSafeInteger(code) || typeof message !== "string") {
    throw new TypeError("A task fails with { code: integer, message: string, data? }.");
  }
  const kept = data === undefined ? undefined : keepData(data, limits);
  return { code: code as number, message, ...(kept === undefined ? {} : { data: kept }) };
}

/**
 * The tool result that a synchronous call would have given for this error: its message, never its stack. A
 * `LongJobsError` is given as its repairable envelope. Never throws, whatever was thrown.
 */
export function toToolError(error: unknown, limits: JsonLimits): JsonObject {
  try {
    return isLongJobsError(error) ? toEnvelopeResult(error, limits) : toTextResult(messageOf(error));
  } catch {
    // The thrown object throws itself when it is read: there is nothing to quote.
    return toTextResult("The handler threw a value that cannot be shown.");
  }
}

/** What the error carries may be no JSON; its code and its message must survive that. */
function toEnvelopeResult(error: LongJobsError, limits: JsonLimits): JsonObject {
  const { partial, ...told } = error.toJSON();
  const envelope = normalizeJsonObject(
    { ...told, ...(partial === undefined ? {} : { partial: keepData(partial, limits) }) },
    "error",
    limits,
  );
  return { ...toTextResult(JSON.stringify(envelope)), structuredContent: envelope };
}

function toTextResult(text: string): JsonObject {
  return { content: [{ type: "text", text }], isError: true };
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === "string" ? message : String(error);
}

function keepData(data: unknown, limits: JsonLimits): JsonValue {
  try {
    return normalizeJson(data, "data", limits);
  } catch (fault) {
    return { omitted: fault instanceof Error ? fault.message : String(fault) };
  }
}
