import { LongJobsError } from "@longjobs/core";
import type {
  Dispatch,
  Outcome,
  RecoveryRules,
  TaskAttempt,
  TaskRecord,
  TaskRunner,
  TaskWork,
} from "@longjobs/core";
import { toStandardSchema } from "./listed-schema.ts";
import { runTool, type RunToolContext } from "./run-tool.ts";
import { describeIssues, type StandardSchema } from "./standard-schema.ts";
import type { TaskTool } from "./tool-config.ts";

/** Where the work of task tools runs when it does not run in the server. */
export interface Executor {
  /**
   * Delivers one run to a worker, which calls `tasks.run(taskId)`. `taskId` with `attempt` names the delivery: it may be
   * submitted more than once, and a queue that knows it already need not take it again. What no worker has taken in
   * `dispatchMs` is submitted again; a rejection is reported.
   */
  submit(dispatch: Dispatch): Promise<void>;
}

/** Runs tasks of registered tools that another process has begun, or has only accepted. */
export class ToolRunner implements TaskRunner {
  readonly dispatch: TaskRunner["dispatch"];
  readonly #tools: ReadonlyMap<string, TaskTool>;
  readonly #context: () => RunToolContext;

  constructor(
    tools: ReadonlyMap<string, TaskTool>,
    executor: Executor | undefined,
    context: () => RunToolContext,
  ) {
    this.#tools = tools;
    this.#context = context;
    this.dispatch = executor === undefined ? undefined : async (dispatch) => executor.submit(dispatch);
  }

  tools(): ReadonlyMap<string, RecoveryRules> {
    return new Map([...this.#tools].map(([name, { recovery }]) => [name, recovery]));
  }

  async start(attempt: TaskAttempt, record: TaskRecord): Promise<Outcome> {
    const { work } = record;
    const tool = this.#tools.get(work?.tool ?? "");
    const { lifecycle } = this.#context();
    // Only registered tools are claimed; one that is gone since is given back by the end of its lease.
    if (tool === undefined || work === undefined)
      return { status: "abandoned", reason: new TypeError(`No tool for task ${attempt.taskId}.`) };
    let args: unknown;
    let outputSchema: StandardSchema | undefined;
    try {
      args = await readArguments(tool, work);
      outputSchema =
        tool.config.outputSchema &&
        toStandardSchema(`outputSchema of ${tool.name}`, tool.config.outputSchema);
    } catch (error) {
      // As a call with such arguments would be answered: no handler runs.
      return lifecycle.run(attempt, () => Promise.reject(error));
    }
    return runTool(tool, args, { attempt, scope: record.scope, meta: {}, outputSchema }, this.#context());
  }
}

/**
 * The arguments as the first run got them: what `prepare` made as it is, and else what the schema makes of what the
 * client sent.
 */
async function readArguments(tool: TaskTool, work: TaskWork): Promise<unknown> {
  const { inputSchema } = tool.config;
  const given = work.arguments ?? {};
  if (work.prepared === true || inputSchema === undefined) return given;
  const schema = toStandardSchema(`inputSchema of ${tool.name}`, inputSchema);
  const parsed = await schema["~standard"].validate(given);
  if (parsed.issues === undefined) return parsed.value;
  throw new LongJobsError(
    "internal_error",
    `The tool ${tool.name} does not take the arguments any more that this task was accepted with: ${describeIssues(parsed.issues)}`,
    { recoveryHint: "Call the tool again with the arguments that it takes now." },
  );
}
