import type { JsonObject, JsonValue } from "./json.ts";

/**
 * The vocabulary of error codes, the same in logs, in code and in front of a model. Each has a heading in
 * `docs/reference/errors.md` that says when it happens and what the caller does.
 */
export const longJobsErrorCodes = [
  "unknown_task",
  "task_exists",
  "task_terminal",
  "version_conflict",
  "lease_lost",
  "input_key_reused",
  "input_not_supported",
  "input_declined",
  "input_cancelled",
  "invalid_input_response",
  "invalid_json",
  "record_too_large",
  "record_corrupt",
  "schema_too_new",
  "store_closed",
  "store_locked",
  "store_unavailable",
  "no_space",
  "interrupted",
  "deadline_exceeded",
  "request_cancelled",
  "cancelled",
  "expired",
  "shutdown",
  "idempotency_conflict",
  "quota_exceeded",
  "internal_error",
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
] as const;

/** One of the codes that longjobs itself raises. */
export type LongJobsErrorCode = (typeof longJobsErrorCodes)[number];

/** An error as data that a model can repair: what happened, and what to do next. */
export interface RepairableError {
  readonly code: string;
  readonly message: string;
  /** True when the same call may succeed later, unchanged. */
  readonly retryable: boolean;
  /** The argument or field at fault. */
  readonly param?: string;
  /** One instruction: what to do next. */
  readonly recoveryHint?: string;
  /** What was achieved before the error, such as `{ cursor: 131072 }`. */
  readonly partial?: JsonValue;
}

/** What a {@link LongJobsError} carries besides its code and message. */
export interface LongJobsErrorOptions {
  /** @default false */
  readonly retryable?: boolean;
  readonly param?: string;
  readonly recoveryHint?: string;
  readonly partial?: JsonValue;
  readonly cause?: unknown;
}

const brand: unique symbol = Symbol.for("longjobs.error") as never;

/**
 * The one error class of longjobs. Handlers may throw it with codes of their own; the envelope reaches the
 * model unchanged. Recognise it with {@link isLongJobsError}, never with `instanceof`: two copies of this
 * package may be installed side by side.
 */
export class LongJobsError extends Error {
  override readonly name = "LongJobsError";
  readonly code: LongJobsErrorCode | (string & {});
  readonly retryable: boolean;
  readonly param?: string;
  readonly recoveryHint?: string;
  readonly partial?: JsonValue;

  constructor(code: LongJobsErrorCode | (string & {}), message: string, options: LongJobsErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
    if (options.param !== undefined) this.param = options.param;
    if (options.recoveryHint !== undefined) this.recoveryHint = options.recoveryHint;
    if (options.partial !== undefined) this.partial = options.partial;
    Object.defineProperty(this, brand, { value: true });
  }

  /** The envelope for a model: no stack, no cause. */
  toJSON(): RepairableError & JsonObject {
    return {
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      ...(this.param === undefined ? {} : { param: this.param }),
      ...(this.recoveryHint === undefined ? {} : { recoveryHint: this.recoveryHint }),
      ...(this.partial === undefined ? {} : { partial: this.partial }),
    };
  }
}

/**
 * True for a {@link LongJobsError} of any copy of this package; with `code`, only for that code.
 */
export function isLongJobsError(
  error: unknown,
  code?: LongJobsErrorCode | (string & {}),
): error is LongJobsError {
  return (
    typeof error === "object" &&
    error !== null &&
    Object.hasOwn(error, brand) &&
    (code === undefined || (error as LongJobsError).code === code)
  );
}
