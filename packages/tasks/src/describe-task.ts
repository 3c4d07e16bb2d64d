import type { DetailedTask, InputRequest, JsonObject, JsonValue, TaskProgress } from "@longjobs/core";
import type { ResolvedFallbackOptions } from "./fallback-options.ts";

/** A tool result for a model that does not know of tasks: text that says what to do next, and the same as data. */
export type TaskReply = JsonObject & { readonly content: JsonValue; readonly structuredContent: JsonObject };

/**
 * What a task is like now, in words that a model can act on.
 *
 * @param lead - What the call has done, said first where the task goes on.
 */
export function describeTask(
  task: DetailedTask,
  progress: TaskProgress | undefined,
  options: ResolvedFallbackOptions,
  lead = "",
): TaskReply {
  const { taskId, status } = task;
  const base = {
    taskId,
    status,
    ...(task.statusMessage === undefined ? {} : { statusMessage: task.statusMessage }),
  };
  switch (task.status) {
    case "working":
      return reply(lead + workingText(task, options), {
        ...base,
        ...(progress === undefined ? {} : { progress: { ...progress } }),
      });
    case "input_required":
      return reply(lead + questionText(task.taskId, task.inputRequests, options), {
        ...base,
        questions: Object.entries(task.inputRequests).map(([key, request]) => toQuestion(key, request)),
      });
    case "completed":
      return completedReply(task.result, base);
    case "failed":
      return failedReply(task, base);
    case "cancelled":
      return reply(`Task ${taskId} was cancelled; it has no result.`, base);
  }
}

/** What the tool that became a task is answered with. */
export function describeStartedTask(taskId: string, options: ResolvedFallbackOptions): TaskReply {
  return reply(
    `This takes longer than one call: it goes on as task ${taskId}, and it is NOT finished yet. ${waitText(taskId, options)} ` +
      "Do not call this tool again for the same request.",
    { taskId, status: "working" },
  );
}

/** A repairable error as a tool result. */
export function errorReply(error: JsonObject): JsonObject {
  return {
    content: [{ type: "text", text: JSON.stringify(error) }],
    structuredContent: { error },
    isError: true,
  };
}

function workingText(task: DetailedTask, options: ResolvedFallbackOptions): string {
  const said = task.statusMessage === undefined ? "" : ` It says: "${cut(task.statusMessage, 200)}".`;
  return `Task ${task.taskId} is still working.${said} It is NOT finished. ${waitText(task.taskId, options)}`;
}

function waitText(taskId: string, { names, maxWaitSeconds }: ResolvedFallbackOptions): string {
  return `Call ${names.get} with ${JSON.stringify({ taskId, waitSeconds: maxWaitSeconds })} to wait for the result.`;
}

function questionText(
  taskId: string,
  requests: { readonly [key: string]: InputRequest },
  { names }: ResolvedFallbackOptions,
): string {
  const entries = Object.entries(requests);
  const lines = entries.map(([key, request]) => {
    const { prompt, choices } = toQuestion(key, request);
    const allowed =
      choices === undefined
        ? ""
        : ` Allowed answers: ${choices.map((choice) => JSON.stringify(choice)).join(", ")}.`;
    return `- ${entries.length === 1 ? "" : `${key}: `}${prompt}${allowed}`;
  });
  const example =
    entries.length === 1
      ? { taskId, response: "…" }
      : { taskId, answers: Object.fromEntries(entries.map(([key]) => [key, "…"])) };
  return (
    `Task ${taskId} waits for ${entries.length === 1 ? "an answer" : "answers"}, and goes on only then:\n${lines.join("\n")}\n` +
    `Answer with ${names.respond} ${JSON.stringify(example)}.`
  );
}

/** A question as a model sees it. */
interface Question extends JsonObject {
  readonly key: string;
  readonly prompt: string;
}

function toQuestion(key: string, request: InputRequest): Question & { readonly choices?: readonly string[] } {
  const { message, requestedSchema, url } = (request.params ?? {}) as {
    message?: string;
    requestedSchema?: JsonObject;
    url?: string;
  };
  const choices = singleChoices(requestedSchema);
  const prompt = `${message ?? request.method}${url === undefined ? "" : ` Open ${url} and say when it is done.`}`;
  return {
    key,
    prompt,
    ...(choices === undefined ? {} : { choices }),
    ...(requestedSchema === undefined || choices !== undefined ? {} : { schema: requestedSchema }),
  };
}

/** The choices of a form with one field, as `ask` makes them. */
function singleChoices(schema: JsonObject | undefined): readonly string[] | undefined {
  const fields = Object.values((schema?.["properties"] ?? {}) as JsonObject) as {
    enum?: readonly string[];
  }[];
  return fields.length === 1 ? fields[0]?.enum : undefined;
}

/** The tool's own content, as a synchronous call would have given it. */
function completedReply(result: JsonObject, base: JsonObject): TaskReply {
  const { content = [], structuredContent, isError, _meta } = result;
  return {
    content,
    structuredContent: { ...base, ...(structuredContent === undefined ? {} : { result: structuredContent }) },
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  };
}

function failedReply(
  { taskId, error }: Extract<DetailedTask, { status: "failed" }>,
  base: JsonObject,
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
    ...reply(`Task ${taskId} failed: ${error.message} ${hint}`, { ...base, error: envelope }),
    isError: true,
  };
}

function reply(text: string, structuredContent: JsonObject): TaskReply {
  return { content: [{ type: "text", text }], structuredContent };
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
