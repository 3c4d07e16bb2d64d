import type { JsonObject, JsonValue } from "./json.ts";
import { isLongJobsError, type LongJobsError } from "./longjobs-error.ts";
import { normalizeJson, type JsonLimits } from "./normalize-json.ts";
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
 * `shutdown`, `lease_lost` and `expired` nothing is written; a protocol error (an integer `code`) fails the task with that code; anything else is a
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
  if (isProtocolError(error)) return { status: "failed", error: toTaskError(error, limits) };
  return { status: "completed", result: toToolError(error, limits) };
}

/** A JSON-RPC error: anything with an integer `code`, whichever library it came from. */
export function isProtocolError(
  error: unknown,
): error is { readonly code: number; readonly message?: unknown } {
  return (
    typeof error === "object" && error !== null && Number.isSafeInteger((error as { code?: unknown }).code)
  );
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
 * `LongJobsError` is given as its repairable envelope.
 */
export function toToolError(error: unknown, limits: JsonLimits): JsonObject {
  if (isLongJobsError(error)) return toEnvelopeResult(error, limits);
  const message = error instanceof Error || hasMessage(error) ? error.message : describe(error);
  return { content: [{ type: "text", text: message }], isError: true };
}

function toEnvelopeResult(error: LongJobsError, limits: JsonLimits): JsonObject {
  const envelope = keepData(error.toJSON(), limits) as JsonObject;
  return {
    content: [{ type: "text", text: JSON.stringify(envelope) }],
    structuredContent: envelope,
    isError: true,
  };
}

function keepData(data: unknown, limits: JsonLimits): JsonValue {
  try {
    return normalizeJson(data, "data", limits);
  } catch (fault) {
    return { omitted: fault instanceof Error ? fault.message : String(fault) };
  }
}

function hasMessage(error: unknown): error is { readonly message: string } {
  return (
    typeof error === "object" &&
    error !== null &&
    typeof (error as { message?: unknown }).message === "string"
  );
}

function describe(error: unknown): string {
  try {
    return String(error);
  } catch {
    // A thrown object whose conversion to text throws too: there is nothing to quote.
    return "The handler threw a value that cannot be shown.";
  }
}
