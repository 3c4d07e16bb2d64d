import { fingerprintJson, LongJobsError } from "@longjobs/core";
import type { InputRequest, InputResponse, TaskAttempt } from "@longjobs/core";

/** One question to the person behind the client, answered with a text. */
export interface Ask {
  readonly prompt: string;
  /** What may be answered. @default any text */
  readonly choices?: readonly string[];
}

/**
 * Makes `ask` for one attempt: an elicitation with a key of its own, made of the question and of how often it has been
 * asked. A handler that starts again from the top, or from its checkpoint, gets the answers already given.
 *
 * The returned function rejects with `input_declined`, `input_cancelled`, and whatever `requestInput` rejects with.
 */
export function createAsk(attempt: TaskAttempt): (ask: Ask) => Promise<string> {
  // In the order of the calls, whatever order the hashes come in: the key must be the same in every attempt.
  let turn: Promise<unknown> = Promise.resolve();
  const put = async (ask: Ask): Promise<string> => {
    const request = toRequest(ask);
    const keyed = turn.then(async () => {
      const question = (await fingerprintJson(request)).slice(0, 16);
      return `ask-${question}-${attempt.countAsked(question)}`;
    });
    turn = keyed;
    const key = await keyed;
    const { [key]: response } = await attempt.requestInput({ [key]: request });
    return toText(ask.prompt, response ?? {});
  };
  return (ask) => {
    const answer = put(ask);
    // A handler may ask ahead and be told to stop before it waits: an unread rejection is no crash.
    answer.catch(() => undefined);
    return answer;
  };
}

function toRequest({ prompt, choices }: Ask): InputRequest {
  if (typeof prompt !== "string" || prompt === "") throw new TypeError("ask needs a prompt.");
  if (choices !== undefined && !isChoices(choices))
    throw new TypeError("choices must be a list of texts, not empty.");
  const answer = { type: "string", ...(choices === undefined ? {} : { enum: [...choices] }) };
  return {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: prompt,
      requestedSchema: { type: "object", properties: { answer }, required: ["answer"] },
    },
  };
}

function isChoices(choices: readonly string[]): boolean {
  return (
    Array.isArray(choices) && choices.length > 0 && choices.every((choice) => typeof choice === "string")
  );
}

function toText(prompt: string, response: InputResponse): string {
  const answer = (response["content"] as { answer?: unknown } | undefined)?.answer;
  if (response["action"] === "accept" && typeof answer === "string") return answer;
  const declined = response["action"] === "decline";
  throw new LongJobsError(
    declined ? "input_declined" : "input_cancelled",
    `The question "${prompt}" was ${declined ? "declined" : "cancelled"}.`,
    { recoveryHint: "Call the tool again if the question can be answered after all." },
  );
}
