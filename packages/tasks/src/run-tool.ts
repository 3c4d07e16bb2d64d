import type { JsonLimits, Outcome, SpilledResult, TaskAttempt, TaskLifecycle } from "@longjobs/core";
import { createAsk } from "./ask.ts";
import { checkToolResult } from "./check-result.ts";
import { discardSpilled, spillIfLarge, type KeptResult, type SpillOptions } from "./spill-result.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { TaskTool, ToolTask } from "./tool-config.ts";

/** What running tools needs. */
export interface RunToolContext {
  readonly lifecycle: TaskLifecycle;
  /** Bounds of results. */
  readonly limits: JsonLimits;
  /** Where large results go. */
  readonly spill: SpillOptions | undefined;
}

/** One run of a tool's handler. */
export interface ToolRun {
  readonly attempt: TaskAttempt;
  readonly scope: string | undefined;
  readonly meta: { readonly [key: string]: unknown };
  readonly outputSchema: StandardSchema | undefined;
  /** True for a call whose answer an SDK checks against the output schema: a link does not fit it. */
  readonly wholeResult?: boolean;
}

/** Runs the handler of a tool for an attempt that this engine holds. Rejects only when it holds it no more. */
export async function runTool(
  tool: TaskTool,
  args: unknown,
  run: ToolRun,
  { lifecycle, limits, spill }: RunToolContext,
): Promise<Outcome> {
  const { attempt, outputSchema, scope } = run;
  const places = run.wholeResult === true ? undefined : spill;
  const finish = async (result: unknown): Promise<KeptResult> => {
    const checked = await checkToolResult(tool.name, result, outputSchema, places?.limits ?? limits);
    const owner = { tool: tool.name, attempt, scope, retentionMs: tool.config.retentionMs };
    // A task that has ended without its handler has no use for a file.
    return places === undefined || attempt.ended ? { result: checked } : spillIfLarge(checked, owner, places);
  };
  let spilled: SpilledResult | undefined;
  const outcome = await lifecycle.run(
    attempt,
    async () => {
      // The client may have gone while the task was being recorded.
      attempt.signal.throwIfAborted();
      const result = await tool.handler(args as never, toToolTask(run, finish, places));
      if (result === undefined && attempt.ended) return undefined;
      const kept = await finish(result);
      ({ spilled } = kept);
      return kept.result;
    },
    tool.limits,
  );
  if (places !== undefined && outcome.status !== "completed") await discardSpilled(spilled, places);
  return outcome;
}

/** The handle with what belongs to the call; a result the handler completes with is checked and kept like a returned one. */
function toToolTask(
  { attempt, scope, meta }: ToolRun,
  finish: (result: unknown) => Promise<KeptResult>,
  places: SpillOptions | undefined,
): ToolTask {
  const complete = async (result: unknown): Promise<void> => {
    const kept = await finish(result);
    try {
      await attempt.complete(kept.result);
    } catch (error) {
      if (places !== undefined) await discardSpilled(kept.spilled, places);
      throw error;
    }
  };
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
    complete,
    fail: (error) => attempt.fail(error),
    cancelled: (statusMessage) => attempt.cancelled(statusMessage),
    ask: createAsk(attempt),
  };
}
