import { fingerprintJson } from "./canonical-json.ts";
import type { Question } from "./inbox.ts";
import { assertInputSupported } from "./input-support.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { LongJobsError } from "./longjobs-error.ts";
import { normalizeJsonObject } from "./normalize-json.ts";
import type { InputRequest, TaskClient } from "./task-record.ts";

/** Long enough for a hash with a prefix; keys go into every poll. */
const maxKeyLength = 256;

/**
 * Checks what a handler wants to ask, before anything is written.
 *
 * @throws `invalid_json`, `input_not_supported`; TypeError for a request that the protocol does not know.
 */
export async function prepareQuestions(
  requests: { readonly [key: string]: InputRequest },
  client: TaskClient | undefined,
  { jsonLimits, validateRequest }: ResolvedLifecycleOptions,
): Promise<Question[]> {
  return Promise.all(
    Object.entries(requests).map(async ([key, given]) => {
      if (key === "" || key.length > maxKeyLength) throw badKey(key);
      const request = normalizeJsonObject(given, "request", jsonLimits) as unknown as InputRequest;
      const fault = typeof request.method === "string" ? validateRequest(request) : "it has no method";
      if (fault !== undefined) throw new TypeError(`The question ${key} is not a valid request: ${fault}`);
      assertInputSupported(request, client);
      return { key, request, fingerprint: await fingerprintJson(request) };
    }),
  );
}

function badKey(key: string): LongJobsError {
  return new LongJobsError("invalid_json", `A question key must have 1 to ${maxKeyLength} characters.`, {
    param: key.slice(0, maxKeyLength),
  });
}
