import { LongJobsError } from "@longjobs/core";

/** The HTTP status of each code. TUS fixes 409, 410, 412, 423 and 460 for what it knows. */
const statusOf: Readonly<Record<string, number>> = {
  unknown_transfer: 404,
  offset_mismatch: 409,
  size_mismatch: 413,
  file_too_large: 413,
  chunk_too_large: 413,
  checksum_mismatch: 460,
  path_not_allowed: 403,
  target_exists: 409,
  source_changed: 410,
  transfer_busy: 423,
  not_active: 409,
  invalid_request: 400,
  quota_exceeded: 429,
  no_space: 507,
  store_unavailable: 503,
  store_closed: 503,
  shutdown: 503,
};

/** A refusal as a response: always our envelope, never cached. */
export function errorResponse(
  error: LongJobsError,
  headers: HeadersInit = {},
  status: number = statusOf[error.code] ?? 500,
): Response {
  const body = JSON.stringify(error.toJSON());
  const all = new Headers(headers);
  all.set("content-type", "application/json");
  all.set("cache-control", "no-store");
  return new Response(body, { status, headers: all });
}

/** The one answer for everything that is not there: a wrong signature, a foreign or an unknown transfer, another path. */
export function notFound(): LongJobsError {
  return new LongJobsError("unknown_transfer", "There is nothing at this address.", {
    recoveryHint: "Get the status of the transfer for its URL, or open a new one.",
  });
}
