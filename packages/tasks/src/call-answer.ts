import { isTerminal, type DetailedTask, type JsonObject, type JsonValue, type Outcome } from "@longjobs/core";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";

/** A task that has ended, with what it ended with. */
export type EndedTask = Extract<DetailedTask, { status: "completed" | "failed" | "cancelled" }>;

export function hasEnded(task: DetailedTask): task is EndedTask {
  return isTerminal(task.status);
}

/**
 * The answer of a synchronous call.
 *
 * @param keyed - True for a call with an idempotency key: to repeat it is of no use once it was cancelled.
 * @throws the handler's protocol error, or why there is no answer.
 */
export function toAnswer(outcome: Outcome | EndedTask, keyed: boolean): JsonObject {
  switch (outcome.status) {
    case "completed":
      return outcome.result;
    case "failed":
      throw jsonRpcError(outcome.error.code, outcome.error.message, outcome.error.data);
    case "abandoned":
      throw outcome.reason;
    case "cancelled":
      if (keyed) throw keyedCancelled();
      throw jsonRpcError(rpcCode.internalError, "The call was cancelled.", {
        code: "request_cancelled",
        retryable: true,
      });
  }
}

/** What a repeat is answered with: as the first call would have been, with what to do about an end that will not change. */
export function toRepeatedAnswer(task: EndedTask): JsonObject {
  if (task.status === "completed") return task.result;
  if (task.status === "failed") {
    const { code, message, data } = task.error;
    throw jsonRpcError(code, message, withHint(data));
  }
  throw keyedCancelled();
}

function keyedCancelled(): Error {
  return jsonRpcError(rpcCode.internalError, "The task was cancelled; it has no result.", {
    code: "cancelled",
    retryable: false,
    recoveryHint,
  });
}

const recoveryHint =
  "This is how the first call with this idempotency key ended; to start over, use a new key.";

/** Beside what the handler said; its own hint comes first. */
function withHint(data: JsonValue | undefined): JsonValue {
  if (data === undefined) return { recoveryHint };
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data;
  return { recoveryHint, ...(data as JsonObject) };
}
