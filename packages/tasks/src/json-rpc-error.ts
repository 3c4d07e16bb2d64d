import {
  defaultJsonLimits,
  isLongJobsError,
  rejectedOutcome,
  type JsonValue,
  type LongJobsErrorCode,
} from "@longjobs/core";

/** JSON-RPC error codes of the protocol and of the Tasks extension. */
export const rpcCode = {
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** Spec "Capability Negotiation": `MISSING_REQUIRED_CLIENT_CAPABILITY`. */
  missingClientCapability: -32021,
} as const;

/**
 * How each code looks to a JSON-RPC client. Invalid params only where the client can mend its request: a fault
 * of the server is never told as one of the client.
 */
const codeOf = {
  unknown_task: rpcCode.invalidParams,
  task_exists: rpcCode.internalError,
  task_terminal: rpcCode.internalError,
  version_conflict: rpcCode.internalError,
  lease_lost: rpcCode.internalError,
  input_key_reused: rpcCode.internalError,
  input_not_supported: rpcCode.internalError,
  input_declined: rpcCode.internalError,
  input_cancelled: rpcCode.internalError,
  invalid_input_response: rpcCode.invalidParams,
  invalid_json: rpcCode.invalidParams,
  record_too_large: rpcCode.invalidParams,
  record_corrupt: rpcCode.internalError,
  schema_too_new: rpcCode.internalError,
  store_closed: rpcCode.internalError,
  store_locked: rpcCode.internalError,
  store_unavailable: rpcCode.internalError,
  no_space: rpcCode.internalError,
  interrupted: rpcCode.internalError,
  deadline_exceeded: rpcCode.internalError,
  request_cancelled: rpcCode.internalError,
  cancelled: rpcCode.internalError,
  expired: rpcCode.internalError,
  shutdown: rpcCode.internalError,
  idempotency_conflict: rpcCode.invalidParams,
  quota_exceeded: rpcCode.internalError,
  internal_error: rpcCode.internalError,
  unknown_transfer: rpcCode.invalidParams,
  offset_mismatch: rpcCode.invalidParams,
  chunk_too_large: rpcCode.invalidParams,
  size_mismatch: rpcCode.invalidParams,
  checksum_mismatch: rpcCode.invalidParams,
  invalid_base64: rpcCode.invalidParams,
  path_not_allowed: rpcCode.invalidParams,
  target_exists: rpcCode.invalidParams,
  file_too_large: rpcCode.invalidParams,
  source_changed: rpcCode.internalError,
  transfer_busy: rpcCode.internalError,
  not_active: rpcCode.invalidParams,
  invalid_request: rpcCode.invalidParams,
} satisfies Record<LongJobsErrorCode, number>;

/** A JSON-RPC error as the SDKs pass it through: any `Error` with an integer `code`, and `data`. */
export interface JsonRpcError extends Error {
  readonly code: number;
  readonly data?: JsonValue;
}

/** The errors that were made for a client. Drivers number their errors too: a number alone says nothing. */
const meantForClients = new WeakSet<object>();

/** Makes a JSON-RPC error without importing an SDK. */
export function jsonRpcError(code: number, message: string, data?: JsonValue): JsonRpcError {
  const error = Object.assign(new Error(message), { code, ...(data === undefined ? {} : { data }) });
  meantForClients.add(error);
  return error;
}

/** What a function of the server's author threw: a protocol error is meant for the client, anything else is a fault. */
export function authorsError(thrown: unknown): unknown {
  const outcome = rejectedOutcome(thrown, undefined, defaultJsonLimits);
  if (outcome.status !== "failed") return thrown;
  const { code, message, data } = outcome.error;
  return jsonRpcError(code, message, data);
}

/** The extension is needed for this very request, and it does not declare it. */
export function missingTasksExtension(extensionId: string): JsonRpcError {
  return jsonRpcError(
    rpcCode.missingClientCapability,
    `This needs a client that declares the extension ${extensionId}; use one, or call a tool that does not need tasks.`,
    { requiredCapabilities: { extensions: { [extensionId]: {} } } },
  );
}

/**
 * The JSON-RPC error for anything that was thrown. What the client can mend is told in full; a fault of the
 * server only by its code: messages of stores name files and hosts.
 */
export function toJsonRpcError(error: unknown): JsonRpcError {
  if (isLongJobsError(error)) {
    const code = (codeOf as Record<string, number>)[error.code] ?? rpcCode.internalError;
    if (code === rpcCode.invalidParams) return jsonRpcError(code, error.message, error.toJSON());
    return jsonRpcError(code, `The server could not do this (${error.code}).`, {
      code: error.code,
      retryable: error.retryable,
    });
  }
  if (isMeantForClients(error)) return error;
  return jsonRpcError(rpcCode.internalError, "The server could not do this.");
}

function isMeantForClients(error: unknown): error is JsonRpcError {
  return typeof error === "object" && error !== null && meantForClients.has(error);
}

/**
 * {@link toJsonRpcError}; a fault of the server goes to `report` as it was, for its operator. A protocol error
 * that somebody threw on purpose is no fault, and neither is work that was told to stop.
 */
export function tellError(error: unknown, report: (error: unknown) => void): JsonRpcError {
  const told = toJsonRpcError(error);
  const onPurpose = told === error || endings.some((code) => isLongJobsError(error, code));
  if (!onPurpose && told.code === rpcCode.internalError) report(error);
  return told;
}

/** How work ends that was told to stop: nothing is broken. */
const endings = ["shutdown", "cancelled", "request_cancelled"];
