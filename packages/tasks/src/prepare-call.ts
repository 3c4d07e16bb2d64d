import {
  defaultJsonLimits,
  fingerprintJson,
  normalizeJson,
  normalizeJsonObject,
  rejectedOutcome,
  repeatRequest,
  type InputRequest,
  type InputResponse,
  type JsonObject,
  type JsonValue,
} from "@longjobs/core";
import { dropUndefined } from "./drop-undefined.ts";
import { authorsError, jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import type { RequestStates } from "./request-state.ts";
import type { Prepared, PrepareRequest, TaskTool } from "./tool-config.ts";
import type { ToolCall } from "./tool-call.ts";
import type { AnswerValidator } from "./validate-input.ts";

/** The call is ready to start, or the client is asked first. */
export type PreparedCall =
  | {
      readonly kind: "ready";
      readonly arguments: unknown;
      readonly recorded: JsonValue;
      /** True when `prepare` made what is recorded: no schema is applied to it again. */
      readonly isFinal: boolean;
    }
  /** `prepare` threw: the answer is a tool error, and no task is made. */
  | { readonly kind: "result"; readonly result: JsonObject }
  | { readonly kind: "input_required"; readonly inputRequests: Requests; readonly requestState: string };

type Requests = { readonly [key: string]: InputRequest };
type Responses = { readonly [key: string]: InputResponse };

/** What the client carries between the rounds, signed. */
interface Round extends JsonObject {
  readonly tool: string;
  readonly scope: string | null;
  /** Fingerprint of the raw arguments: answers given for one call are no answers for another. */
  readonly arguments: string;
  readonly asked: { readonly [key: string]: JsonObject };
  readonly answers: Responses;
}

/** What preparing needs besides the tool and the call. */
export interface PrepareContext {
  readonly states: RequestStates;
  readonly answers: AnswerValidator;
}

/**
 * Runs a tool's `prepare`, if it has one. Input that is needed before a task exists goes through the
 * multi-round-trip flow of the original request (spec "Task Creation": servers "SHOULD resolve all MRTR
 * exchanges _synchronously_ before responding with a `CreateTaskResult`"). Answers that do not fit are asked
 * for again, with the reason.
 *
 * @throws -32602 for a `requestState` that is not ours, is too old, or belongs to another call.
 */
export async function prepareCall(
  tool: TaskTool,
  args: unknown,
  call: ToolCall,
  scope: string | undefined,
  context: PrepareContext,
): Promise<PreparedCall> {
  const { prepare } = tool.config;
  if (prepare === undefined)
    return { kind: "ready", arguments: args, recorded: call.rawArguments, isFinal: false };
  const fingerprint = await fingerprintJson(call.rawArguments);
  const fresh: Round = {
    tool: tool.name,
    scope: scope ?? null,
    arguments: fingerprint,
    asked: {},
    answers: {},
  };
  const last =
    call.requestState === undefined ? fresh : await openRound(call.requestState, fresh, context.states);
  const { accepted, refused } = judge(last.asked as unknown as Requests, call, context.answers);
  const answers: Responses = { ...last.answers, ...accepted };
  const request: PrepareRequest = { ...call.request, scope, inputResponses: answers };
  let prepared: Prepared<unknown>;
  try {
    prepared = (await prepare(args as never, request)) ?? {};
  } catch (error) {
    return { kind: "result", result: rejectedResult(error) };
  }
  if (typeof prepared !== "object") throw new TypeError("prepare gave no object.");
  if (prepared.inputRequests === undefined) return ready(prepared.arguments, args, call);
  const questions = dropUndefined(prepared.inputRequests) as Requests;
  const inputRequests = withReasons(questions, refused, context.answers);
  const asked = questions as unknown as Round["asked"];
  return {
    kind: "input_required",
    inputRequests,
    requestState: await context.states.sign({ ...fresh, asked, answers }),
  };
}

function ready(changed: unknown, args: unknown, call: ToolCall): PreparedCall {
  if (changed === undefined)
    return { kind: "ready", arguments: args, recorded: call.rawArguments, isFinal: false };
  try {
    return {
      kind: "ready",
      arguments: changed,
      recorded: normalizeJson(dropUndefined(changed), "arguments"),
      isFinal: true,
    };
  } catch (error) {
    // Not `invalid_json`, which would blame the client.
    throw new TypeError("prepare gave arguments that cannot be stored.", { cause: error });
  }
}

/** @throws the protocol error that `prepare` threw. */
function rejectedResult(thrown: unknown): JsonObject {
  const outcome = rejectedOutcome(thrown, undefined, defaultJsonLimits);
  if (outcome.status === "completed") return outcome.result;
  throw authorsError(thrown) as Error;
}

async function openRound(requestState: string, expected: Round, states: RequestStates): Promise<Round> {
  const round = (await states.open(requestState)) as Round | undefined;
  const same =
    round?.tool === expected.tool && round.scope === expected.scope && round.arguments === expected.arguments;
  if (round === undefined || !same) {
    throw jsonRpcError(
      rpcCode.invalidParams,
      "The requestState is not valid for this call; call the tool again without it.",
      { reason: "invalid_request_state" },
    );
  }
  return round;
}

/** Only what was asked counts, and only answers that fit. */
function judge(
  asked: Requests,
  { inputResponses = {}, malformedKeys }: ToolCall,
  answers: AnswerValidator,
): { readonly accepted: Responses; readonly refused: ReadonlyMap<string, string> } {
  const accepted: [string, InputResponse][] = [];
  const refused = new Map<string, string>();
  for (const [key, request] of Object.entries(asked)) {
    if (malformedKeys.includes(key)) refused.set(key, "It was not a response object.");
    const response = Object.hasOwn(inputResponses, key) ? inputResponses[key] : undefined;
    if (response === undefined) continue;
    const kept = normalizeJsonObject(response, "response");
    const fault = answers.findFault(request, kept);
    if (fault === undefined) accepted.push([key, kept]);
    else refused.set(key, fault);
  }
  return { accepted: Object.fromEntries(accepted), refused };
}

function withReasons(
  requests: Requests,
  refused: ReadonlyMap<string, string>,
  answers: AnswerValidator,
): Requests {
  return Object.fromEntries(
    Object.entries(requests).map(([key, request]) => {
      const fault = answers.findRequestFault(request);
      if (fault !== undefined)
        throw new TypeError(`prepare asked ${key} by a request that is not valid: ${fault}`);
      const reason = refused.get(key);
      return [key, reason === undefined ? request : repeatRequest(request, reason)];
    }),
  );
}
