import type { Answer } from "./inbox.ts";
import { LongJobsError } from "./longjobs-error.ts";
import { normalizeJsonObject, type JsonLimits } from "./normalize-json.ts";

const notAnObject: Answer = { malformed: "It was not a response object." };

/**
 * What came from a client, as answers for the inbox. What is no object is a bad answer; what JSON cannot hold
 * refuses the whole update, before anything is written.
 *
 * @throws `invalid_json`, `record_too_large`
 */
export function parseResponses(
  responses: { readonly [wireKey: string]: unknown },
  malformedKeys: readonly string[],
  limits: JsonLimits,
): ReadonlyMap<string, Answer> {
  if (typeof responses !== "object" || responses === null || Array.isArray(responses)) {
    throw new LongJobsError("invalid_json", "Answers come as an object of responses by key.", {
      param: "inputResponses",
    });
  }
  const answers = new Map<string, Answer>(malformedKeys.map((key) => [key, notAnObject]));
  for (const [key, response] of Object.entries(responses)) {
    const isObject = typeof response === "object" && response !== null && !Array.isArray(response);
    answers.set(
      key,
      isObject ? { response: normalizeJsonObject(response, "response", limits) } : notAnObject,
    );
  }
  return answers;
}
