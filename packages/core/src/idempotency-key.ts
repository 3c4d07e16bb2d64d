import { LongJobsError } from "./longjobs-error.ts";

/** Room for any id, hash or name; a key is no place for data. */
const maxKeyLength = 256;

/**
 * Refuses what cannot be an idempotency key: anything but 1 to 256 characters, in UTF-16 units.
 *
 * @param param - What the caller calls the key; the error names it.
 * @throws `invalid_request`
 */
export function assertIdempotencyKey(key: unknown, param: string): asserts key is string {
  if (typeof key === "string" && key.length > 0 && key.length <= maxKeyLength) return;
  throw new LongJobsError("invalid_request", `${param} must be a text of 1 to ${maxKeyLength} characters.`, {
    param,
    recoveryHint: `Pass ${param} as a short text, such as a UUID, or leave it out. Nothing was started.`,
  });
}

/** A key that came before, with other arguments. */
export function idempotencyConflict(param: string): LongJobsError {
  return new LongJobsError(
    "idempotency_conflict",
    `The ${param} of this call was used before, with other arguments.`,
    {
      param,
      recoveryHint:
        `Pass a new ${param} for these arguments, or the arguments of the first call to get its answer. ` +
        "Nothing was started.",
    },
  );
}
