import type { JsonLimits, JsonObject, Outcome, TaskAttempt, TaskLifecycle } from "@longjobs/core";
import { createAsk } from "./ask.ts";
import { checkToolResult } from "./check-result.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { TaskTool, ToolTask } from "./tool-config.ts";

/** What running tools needs. */
export interface RunToolContext {
  readonly lifecycle: TaskLifecycle;
  /** Bounds of results. */
  readonly limits: JsonLimits;
}

/** One run of a tool's handler. */
export interface ToolRun {
  readonly attempt: TaskAttempt;
  readonly scope: string | undefined;
  readonly meta: { readonly [key: string]: unknown };
  readonly outputSchema: StandardSchema | undefined;
}

/** Runs the handler of a tool for an attempt that this engine holds. Never rejects. */
export function runTool(
  tool: TaskTool,
  args: unknown,
  run: ToolRun,
  { lifecycle, limits }: RunToolContext,
): Promise<Outcome> {
  const { attempt, outputSchema } = run;
  const check = (result: unknown): Promise<JsonObject> =>
    checkToolResult(tool.name, result, outputSchema, limits);
  return lifecycle.run(
    attempt,
    async () => {
      // The client may have gone while the task was being recorded.
      attempt.signal.throwIfAborted();
      const result = await tool.handler(args as never, toToolTask(run, check));
      return result === undefined && attempt.ended ? undefined : check(result);
    },
    tool.limits,
  );
}

/** The handle with what belongs to the call; a result the handler completes with is checked like a returned one. */
function toToolTask(
  { attempt, scope, meta }: ToolRun,
  check: (result: unknown) => Promise<JsonObject>,
): ToolTask {
  return {
    taskId: attempt.taskId,
    attempt: attempt.attempt,
    get checkpoint() {
      return attempt.checkpoint;
    },
    signal: attempt.signal,
    scope,
    meta,
    progress: (progress) => attempt.progress(progress),
    requestInput: (requests) => attempt.requestInput(requests),
    resumeInput: () => attempt.resumeInput(),
    saveCheckpoint: (value) => attempt.saveCheckpoint(value),
    complete: async (result) => attempt.complete(await check(result)),
    fail: (error) => attempt.fail(error),
    cancelled: (statusMessage) => attempt.cancelled(statusMessage),
    ask: createAsk(attempt),
  };
}
