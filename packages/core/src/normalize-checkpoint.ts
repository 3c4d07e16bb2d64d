import type { JsonValue } from "./json.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError, LongJobsError } from "./longjobs-error.ts";
import { normalizeJson } from "./normalize-json.ts";

/**
 * A checkpoint as it is kept.
 *
 * @throws `invalid_json`; `record_too_large` beyond `maxCheckpointBytes`, with what to save instead.
 */
export function normalizeCheckpoint(
  value: unknown,
  { jsonLimits, maxCheckpointBytes }: ResolvedLifecycleOptions,
): JsonValue {
  const limits = { ...jsonLimits, maxBytes: Math.min(jsonLimits.maxBytes, maxCheckpointBytes) };
  try {
    const kept = normalizeJson(value, "checkpoint", limits);
    // The normaliser counts a lower bound; a checkpoint is small enough to be measured.
    if (new TextEncoder().encode(JSON.stringify(kept)).length > limits.maxBytes)
      throw tooLarge(limits.maxBytes);
    return kept;
  } catch (error) {
    throw isLongJobsError(error, "record_too_large") ? tooLarge(limits.maxBytes) : error;
  }
}

function tooLarge(maxBytes: number): LongJobsError {
  return new LongJobsError("record_too_large", `A checkpoint has at most ${maxBytes} bytes of JSON text.`, {
    param: "checkpoint",
    recoveryHint: "Save a cursor that says where to go on, and keep the work itself elsewhere.",
  });
}
