import { assertInputSupported, isLongJobsError, LongJobsError } from "@longjobs/core";
import type { InputRequest, InputResponse } from "@longjobs/core";
import type { Served } from "./serve-tool-call.ts";
import { canAsk, toQuestion2025, type Client2025 } from "./tasks-2025/client-2025.ts";
import type { ToolCall } from "./tool-call.ts";

/** A `prepare` that asks and asks is stopped, as the SDK's own flow stops it. */
const maxRounds = 8;

/**
 * Serves a call on a revision without multi-round-trip input: what `prepare` asks goes to the client as requests of the
 * server, while its call is open.
 *
 * @throws `input_not_supported` when the client cannot be asked.
 */
export async function askFirst(
  call: ToolCall,
  client: Client2025,
  serve: (call: ToolCall) => Promise<Served>,
): Promise<Exclude<Served, { kind: "input_required" }>> {
  let served = await serve(call);
  for (let round = 0; served.kind === "input_required"; round += 1) {
    if (round === maxRounds) throw notAnswered("The tool keeps asking.", undefined);
    const { inputRequests, requestState } = served;
    // All or none: a person is not troubled with half of the questions of a call that fails.
    for (const question of Object.values(inputRequests))
      if (!canAsk(question, client)) assertInputSupported(question, { capabilities: client.askable });
    const inputResponses = await askAll(inputRequests, client, call.signal);
    served = await serve({ ...call, inputResponses, requestState });
  }
  return served;
}

async function askAll(
  questions: { readonly [key: string]: InputRequest },
  client: Client2025,
  signal: AbortSignal,
): Promise<{ readonly [key: string]: InputResponse }> {
  const ask = async ([key, question]: [string, InputRequest]): Promise<[string, InputResponse]> => {
    const response = await client.ask(toQuestion2025(question, crypto.randomUUID()), signal);
    return [key, response as InputResponse];
  };
  try {
    return Object.fromEntries(await Promise.all(Object.entries(questions).map(ask)));
  } catch (error) {
    throw notAnswered("The client did not answer a question that this tool asks first.", error);
  }
}

function notAnswered(message: string, cause: unknown): LongJobsError {
  return new LongJobsError("input_not_supported", message, {
    cause,
    recoveryHint: "Pass what is needed as an argument, or use a client that can be asked.",
  });
}

/** What the model can repair, as its envelope. */
export function isNotAnswered(error: unknown): error is LongJobsError {
  return isLongJobsError(error, "input_not_supported");
}
