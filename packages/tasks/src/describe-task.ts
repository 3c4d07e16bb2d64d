import type { DetailedTask, InputRequest, JsonObject, JsonValue, TaskProgress } from "@longjobs/core";
import { exampleAnswer, questionLine, toQuestion } from "./describe-question.ts";
import type { ResolvedFallbackOptions } from "./fallback-options.ts";

/** Of what a handler says in a reply that a model may read many times; a whole reply stays below 600 characters. */
const maxSaid = 80;

/** Structured content up to this many characters is sent as text too; a large result is sent once. */
const maxBareText = 4_000;

/** A tool result for a model that does not know of tasks: text that says what to do next, and the same as data. */
export type TaskReply = JsonObject & { readonly content: JsonValue; readonly structuredContent: JsonObject };

/**
 * What a task is like now, in words that a model can act on.
 *
 * @param lead - What the call has done, said first unless the reply is the tool's own result.
 */
export function describeTask(
  task: DetailedTask,
  progress: TaskProgress | undefined,
  options: ResolvedFallbackOptions,
  lead = "",
): TaskReply {
  const { taskId, status } = task;
  const { statusMessage } = task;
  const base = {
    taskId,
    status,
    ...(statusMessage === undefined ? {} : { statusMessage: cut(statusMessage, maxSaid) }),
  };
  switch (task.status) {
    case "working":
      return reply(lead + workingText(task, options), {
        ...base,
        ...countsOf(progress),
      });
    case "input_required":
      return reply(lead + describeQuestions(task.taskId, task.inputRequests, options), {
        ...base,
        questions: Object.entries(task.inputRequests).map(([key, request]) => toQuestion(key, request)),
      });
    case "completed":
      return completedReply(taskId, task.result, base);
    case "failed":
      return failedReply(task, base, lead);
    case "cancelled":
      return reply(`${lead}Task ${taskId} was cancelled; it has no result.`, base);
  }
}

/** What a call is answered with whose task an earlier one made. */
export function describeFoundTask(task: DetailedTask, options: ResolvedFallbackOptions): TaskReply {
  return describeTask(task, undefined, options, "An earlier call with this idempotency key started it. ");
}

/** What the tool that became a task is answered with. */
export function describeStartedTask(taskId: string, options: ResolvedFallbackOptions): TaskReply {
  return reply(
    `This takes longer than one call: it goes on as task ${taskId}, and it is NOT finished yet. ${waitText(taskId, options)} ` +
      "Do not call this tool again for the same request.",
    { taskId, status: "working" },
  );
}

/** What a model is told whose host waits for the task itself. @param canFollow - True when the model can follow it too. */
export function describeAcceptedTask(
  taskId: string,
  canFollow: boolean,
  options: ResolvedFallbackOptions,
): string {
  const next = canFollow ? waitText(taskId, options) : "Its result comes later.";
  return `The work goes on as task ${taskId}, and it is NOT finished yet. ${next} Do not call this tool again for the same request.`;
}

/** A repairable error as a tool result. */
export function errorReply(error: JsonObject): JsonObject {
  return {
    content: [{ type: "text", text: JSON.stringify(error) }],
    structuredContent: { error },
    isError: true,
  };
}

/** The counts alone: the message is in `statusMessage` already. */
function countsOf(progress: TaskProgress | undefined): JsonObject {
  if (progress === undefined || (progress.done === undefined && progress.total === undefined)) return {};
  const { message: _said, ...counts } = progress;
  return { progress: counts };
}

function workingText(task: DetailedTask, options: ResolvedFallbackOptions): string {
  const said = task.statusMessage === undefined ? "" : ` It says: "${cut(task.statusMessage, maxSaid)}".`;
  return `Task ${task.taskId} is still working.${said} It is NOT finished. ${waitText(task.taskId, options)}`;
}

function waitText(taskId: string, { names, maxWaitSeconds }: ResolvedFallbackOptions): string {
  return `Call ${names.get} with ${JSON.stringify({ taskId, waitSeconds: maxWaitSeconds })} to wait for the result.`;
}

/** What is asked, and how a model answers it. */
export function describeQuestions(
  taskId: string,
  requests: { readonly [key: string]: InputRequest },
  { names }: ResolvedFallbackOptions,
): string {
  const entries = Object.entries(requests);
  const [first] = entries;
  const single = entries.length === 1 && first !== undefined;
  const lines = entries.map(([key, request]) => `- ${single ? "" : `${key}: `}${questionLine(request)}`);
  const example = single
    ? { taskId, response: exampleAnswer(first[1]) }
    : { taskId, answers: Object.fromEntries(entries.map(([key, request]) => [key, exampleAnswer(request)])) };
  return (
    `Task ${taskId} waits for ${single ? "an answer" : "answers"}, and goes on only then:\n${lines.join("\n")}\n` +
    `Answer with ${names.respond} ${JSON.stringify(example)}. ` +
    'If the user does not want to answer, pass "action":"decline" instead.'
  );
}

/** The tool's own content, as a synchronous call would have given it. */
function completedReply(taskId: string, result: JsonObject, base: JsonObject): TaskReply {
  const { content, structuredContent, isError, _meta } = result;
  return {
    content: Array.isArray(content) && content.length > 0 ? content : [bareText(taskId, structuredContent)],
    structuredContent: { ...base, ...(structuredContent === undefined ? {} : { result: structuredContent }) },
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  };
}

/** Many hosts show a model the text alone: without any it could not tell that the work is done. */
function bareText(taskId: string, structuredContent: JsonValue | undefined): JsonObject {
  return { type: "text", text: `Task ${taskId} is completed. ${resultText(structuredContent)}` };
}

function resultText(structuredContent: JsonValue | undefined): string {
  if (structuredContent === undefined) return "It has no result to show.";
  const json = JSON.stringify(structuredContent);
  return json.length > maxBareText ? "Its result is in structuredContent." : json;
}

function failedReply(
  { taskId, error }: Extract<DetailedTask, { status: "failed" }>,
  base: JsonObject,
  lead: string,
): TaskReply {
  const data = error.data as { recoveryHint?: unknown; reason?: unknown; retryable?: unknown } | undefined;
  const hint =
    typeof data?.recoveryHint === "string" ? data.recoveryHint : "Tell the user, or call the tool again.";
  const envelope = {
    code: typeof data?.reason === "string" ? data.reason : String(error.code),
    message: error.message,
    retryable: data?.retryable === true,
    recoveryHint: hint,
  };
  return {
    ...reply(`${lead}Task ${taskId} failed: ${error.message} ${hint}`, { ...base, error: envelope }),
    isError: true,
  };
}

function reply(text: string, structuredContent: JsonObject): TaskReply {
  return { content: [{ type: "text", text }], structuredContent };
}

/** Cut by what it takes on the wire: a quote or a line break takes two characters there. */
function cut(text: string, length: number): string {
  const start = text.slice(0, length);
  if (start.length === text.length && wireLength(text) <= length) return text;
  let kept = start.length;
  while (wireLength(start.slice(0, kept)) >= length) kept -= 1;
  return `${start.slice(0, kept).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function wireLength(text: string): number {
  return JSON.stringify(text).length - 2;
}
