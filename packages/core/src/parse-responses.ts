import type { Answer } from "./inbox.ts";
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
