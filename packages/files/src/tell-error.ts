import { isLongJobsError, LongJobsError, type ErrorListener, reportBackgroundError } from "@longjobs/core";

const meantForClients = new WeakSet<object>();

/** A mistake in the configuration of the server, whose message every client is told: its author is the first of them. */
export function configurationError(message: string): LongJobsError {
  const error = new LongJobsError("internal_error", message);
  meantForClients.add(error);
  return error;
}

/** What clients are told in full: nothing in these errors is about the server's own files and hosts. */
const toldInFull: ReadonlySet<string> = new Set([
  "unknown_transfer",
  "offset_mismatch",
  "chunk_too_large",
  "size_mismatch",
  "checksum_mismatch",
  "invalid_base64",
  "path_not_allowed",
  "target_exists",
  "file_too_large",
  "source_changed",
  "transfer_busy",
  "not_active",
  "invalid_request",
  "quota_exceeded",
  "shutdown",
]);

/**
 * The error as a client is told it. Of a fault of the server only its code: messages of stores name files and hosts. The
 * fault itself goes to the listener; a full disk does not, for the client has to act on it.
 */
export function tellError(error: unknown, onError: ErrorListener | undefined): LongJobsError {
  if (isLongJobsError(error) && (toldInFull.has(error.code) || meantForClients.has(error))) return error;
  if (isLongJobsError(error, "no_space")) return noSpace(error);
  reportBackgroundError(error, onError);
  if (!isLongJobsError(error))
    return new LongJobsError("internal_error", "The server could not do this.", {
      recoveryHint: "Tell the user; calling again will not help.",
    });
  return new LongJobsError(error.code, `The server could not do this (${error.code}).`, {
    retryable: error.retryable,
    recoveryHint: error.retryable
      ? "Get the status in a moment, and go on at its offset."
      : "Tell the user; calling again will not help.",
  });
}

function noSpace({ partial }: LongJobsError): LongJobsError {
  return new LongJobsError("no_space", "The server has no room left; what is staged is kept.", {
    retryable: true,
    recoveryHint: "Get the status later, and go on at its offset.",
    ...(partial === undefined ? {} : { partial }),
  });
}
