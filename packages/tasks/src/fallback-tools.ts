import { isLongJobsError, isTerminal, LongJobsError } from "@longjobs/core";
import type {
  DetailedTask,
  InputRequest,
  JsonObject,
  JsonValue,
  RequestContext,
  TaskLifecycle,
  TaskProgress,
} from "@longjobs/core";
import { z } from "zod";
import { questionLine } from "./describe-question.ts";
import { describeTask, errorReply } from "./describe-task.ts";
import type { ResolvedFallbackOptions } from "./fallback-options.ts";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import { readAnswer, type AnswerAction } from "./read-answer.ts";
import type { ScopeResolver } from "./scope.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { AnswerValidator } from "./validate-input.ts";
import { waitWhile } from "./wait-for-task.ts";

/** Whose call of a fallback tool it is. */
export interface FallbackCall {
  readonly request: RequestContext;
  /** Ends a wait, never the task. */
  readonly signal: AbortSignal;
  /** Present when the client gave a progress token. */
  readonly sendProgress?: (progress: TaskProgress) => void;
}

/** A tool for clients without tasks. */
export interface FallbackTool {
  readonly name: string;
  readonly config: {
    readonly title: string;
    readonly description: string;
    readonly inputSchema: StandardSchema;
    readonly outputSchema: StandardSchema;
    readonly annotations: {
      readonly readOnlyHint: boolean;
      readonly idempotentHint: boolean;
      readonly destructiveHint: boolean;
    };
  };
  serve(args: unknown, call: FallbackCall): Promise<JsonObject>;
}

/** What the tools need. */
export interface FallbackContext {
  readonly lifecycle: TaskLifecycle;
  readonly resolveScope: ScopeResolver;
  readonly answers: AnswerValidator;
  readonly options: ResolvedFallbackOptions;
  /** The error as the client is told it; a fault of the server is reported on the way. */
  readonly tellError: (error: unknown) => Error;
}

const taskId = z.string().describe("The id of the task.");
const anyAnswer = z.union([
  z.string(),
  z.number(),
  z.boolean(),
  z.array(z.string()),
  z.record(z.string(), z.unknown()),
]);

/** What all three tools answer with. */
const replySchema = z.looseObject({
  taskId: z.string().optional(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]).optional(),
  statusMessage: z.string().optional(),
  progress: z
    .looseObject({
      message: z.string().optional(),
      done: z.number().optional(),
      total: z.number().optional(),
    })
    .optional(),
  questions: z.array(z.looseObject({ key: z.string(), prompt: z.string() })).optional(),
  /** The structured result of the tool that started the task. */
  result: z.unknown().optional(),
  error: z.looseObject({ code: z.string(), message: z.string() }).optional(),
});

/** The three tools, in the order they are listed. */
export function createFallbackTools(context: FallbackContext): readonly FallbackTool[] {
  const { names, descriptions } = context.options;
  const tool = (
    name: string,
    words: Pick<FallbackTool["config"], "title" | "description">,
    hints: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean },
    inputSchema: StandardSchema,
    serve: (args: never, call: FallbackCall, scope: string | undefined) => Promise<JsonObject>,
  ): FallbackTool => ({
    name,
    config: {
      ...words,
      inputSchema,
      outputSchema: replySchema,
      annotations: { ...hints, idempotentHint: true },
    },
    serve: (args, call) =>
      serveRepairably(call, context, async () =>
        serve(args as never, call, await context.resolveScope(call.request)),
      ),
  });
  return [
    tool(
      names.get,
      { title: "Get a task", description: descriptions.get },
      { readOnlyHint: true, destructiveHint: false },
      z.object({
        taskId,
        waitSeconds: z.number().min(0).optional().describe("Seconds to wait for a change."),
      }),
      (args: GetArguments, call, scope) => getTask(args, call, scope, context),
    ),
    tool(
      names.respond,
      { title: "Answer a task", description: descriptions.respond },
      { readOnlyHint: false, destructiveHint: false },
      z.object({
        taskId,
        response: anyAnswer.optional().describe("The answer to the one open question."),
        answers: z.record(z.string(), anyAnswer).optional().describe("Answers by the key of their question."),
        action: z
          .enum(["accept", "decline", "cancel"])
          .optional()
          .describe("decline or cancel to give no answer."),
      }),
      (args: RespondArguments, _call, scope) => respond(args, scope, context),
    ),
    tool(
      names.cancel,
      { title: "Cancel a task", description: descriptions.cancel },
      { readOnlyHint: false, destructiveHint: true },
      z.object({ taskId }),
      async (args: { readonly taskId: string }, _call, scope) => {
        await context.lifecycle.cancelTask(args.taskId, { scope });
        const task = await context.lifecycle.getTask(args.taskId, { scope });
        const lead = isTerminal(task.status) ? "" : "The task was asked to stop, and stops when it can. ";
        return describe(task, scope, context, lead);
      },
    ),
  ];
}

interface GetArguments {
  readonly taskId: string;
  readonly waitSeconds?: number;
}

/**
 * Waits for something that a model can act on: an end, or a question. Progress alone does not end the wait, or a task that
 * reports every second would cost a call every second; it goes out as notifications where the client wants them.
 */
async function getTask(
  { taskId: id, waitSeconds = 0 }: GetArguments,
  call: FallbackCall,
  scope: string | undefined,
  context: FallbackContext,
): Promise<JsonObject> {
  const { lifecycle, options } = context;
  const untilMs = performance.now() + Math.min(waitSeconds, options.maxWaitSeconds) * 1_000;
  const first = await lifecycle.getTask(id, { scope });
  const task = await waitWhile(first, ({ status }) => status === "working", {
    lifecycle,
    scope,
    untilMs,
    signal: call.signal,
    sendProgress: call.sendProgress,
  });
  return describe(task, scope, context);
}

interface RespondArguments {
  readonly taskId: string;
  readonly response?: JsonValue | undefined;
  readonly answers?: { readonly [key: string]: JsonValue } | undefined;
  readonly action?: AnswerAction;
}

/** Every answer is checked before any is given: a refused one changes nothing, and its question stays. */
async function respond(
  { taskId: id, response, answers, action = "accept" }: RespondArguments,
  scope: string | undefined,
  context: FallbackContext,
): Promise<JsonObject> {
  const { lifecycle } = context;
  const task = await lifecycle.getTask(id, { scope });
  if (task.status !== "input_required") throw noQuestion(task);
  const given = pickAnswers(task.inputRequests, { response, answers, action });
  const responses = Object.fromEntries(
    given.map(([key, request, answer]) => [
      key,
      checkedAnswer(key, request, answer, action, context.answers),
    ]),
  );
  const taken = await lifecycle.updateTask(id, responses, { scope });
  const late = Object.keys(responses).filter((key) => !taken.includes(key));
  if (late.length > 0) throw tooLate(late, taken);
  return describe(await lifecycle.getTask(id, { scope }), scope, context, "The answer was taken. ");
}

type Given = readonly [key: string, request: InputRequest, answer: JsonValue];

function pickAnswers(
  requests: { readonly [key: string]: InputRequest },
  {
    response,
    answers,
    action,
  }: Pick<RespondArguments, "response" | "answers"> & { readonly action: AnswerAction },
): readonly Given[] {
  const open = Object.entries(requests);
  if (answers !== undefined && Object.keys(answers).length > 0) {
    if (response !== undefined)
      throw invalid("Both response and answers were given.", "Pass one of the two.", "response");
    return Object.entries(answers).map(([key, answer]) => {
      const request = Object.hasOwn(requests, key) ? requests[key] : undefined;
      if (request === undefined)
        throw invalid(
          `There is no open question ${key}.`,
          `Open questions: ${open.map(([name]) => name).join(", ")}.`,
          key,
        );
      return [key, request, answer];
    });
  }
  if (response === undefined && action === "accept") {
    throw invalid(
      "There is no answer in this call.",
      "Pass response for the one open question, or answers by key.",
      "response",
    );
  }
  if (open.length > 1 && action === "accept") {
    throw invalid(
      "Several questions are open.",
      `Pass answers with these keys: ${open.map(([name]) => name).join(", ")}.`,
      "answers",
    );
  }
  return open.map(([key, request]) => [key, request, response ?? null]);
}

function checkedAnswer(
  key: string,
  request: InputRequest,
  answer: JsonValue,
  action: AnswerAction,
  answers: AnswerValidator,
): JsonObject {
  const response = readAnswer(request, answer, action);
  const fault = answers.findFault(request, response);
  if (fault !== undefined) {
    throw invalid(
      `The answer was not accepted: ${fault}`,
      `Give an answer that fits; the question is still open: ${questionLine(request)}`,
      key,
    );
  }
  return response;
}

function invalid(message: string, recoveryHint: string, param: string): LongJobsError {
  return new LongJobsError("invalid_input_response", message, { recoveryHint, param });
}

function noQuestion({ status }: DetailedTask): LongJobsError {
  return new LongJobsError("invalid_input_response", `The task has no open question; it is ${status}.`, {
    recoveryHint: "Get the task to see what it is doing.",
  });
}

function tooLate(keys: readonly string[], taken: readonly string[]): LongJobsError {
  const others = taken.length === 0 ? "" : ` The answers to ${taken.join(", ")} were taken.`;
  return new LongJobsError(
    "invalid_input_response",
    `Somebody answered ${keys.join(", ")} first, or the question was withdrawn; this answer was not used.${others}`,
    { recoveryHint: "Get the task to see what it is doing.", partial: { taken } },
  );
}

async function describe(
  task: DetailedTask,
  scope: string | undefined,
  { lifecycle, options }: FallbackContext,
  lead?: string,
): Promise<JsonObject> {
  const progress =
    task.status === "working" ? await lifecycle.getProgress(task.taskId, { scope }) : undefined;
  return describeTask(task, progress, options, lead);
}

/** What a model can repair comes back as a tool error with the envelope; the rest is told like any fault. */
async function serveRepairably(
  { signal }: FallbackCall,
  { tellError }: FallbackContext,
  serve: () => Promise<JsonObject>,
): Promise<JsonObject> {
  try {
    return await serve();
  } catch (error) {
    // The client ended the call: nobody is told anything, and nothing is wrong.
    if (signal.aborted) throw jsonRpcError(rpcCode.internalError, "The call was cancelled.");
    const told = tellError(error) as Error & { readonly data?: JsonObject };
    if (!isLongJobsError(error) || told.data === undefined) throw told;
    const { recoveryHint = hintFor(error), ...envelope } = told.data;
    return errorReply({ ...envelope, message: told.message, recoveryHint });
  }
}

/** What to do about an error that brings no hint of its own. */
function hintFor(error: LongJobsError): string {
  if (error.code === "unknown_task")
    return "Check the taskId. If it is right the task is gone: call the tool that started it again.";
  return error.retryable
    ? "Call this tool again in a moment."
    : "Tell the user; calling again will not help.";
}
