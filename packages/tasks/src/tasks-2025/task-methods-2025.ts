import { isTerminal, toTask2025 } from "@longjobs/core";
import type { DetailedTask, InputRequest, JsonObject, TaskLifecycle } from "@longjobs/core";
import { jsonRpcError, rpcCode } from "../json-rpc-error.ts";
import type { ScopeResolver } from "../scope.ts";
import { canAsk, type Caller2025 } from "./client-2025.ts";
import { ResultQuestions } from "./result-questions.ts";
import { StatusWatch } from "./status-watch.ts";
import { relatedTo } from "./wire-2025.ts";

/** What the methods need. */
export interface TaskMethods2025Context {
  readonly lifecycle: TaskLifecycle;
  readonly resolveScope: ScopeResolver;
  /** The error as the client is told it; a fault of the server is reported on the way. */
  readonly tellError: (error: unknown) => Error;
  /** How a question is answered that this client cannot be asked, in words. */
  readonly describeQuestions: (taskId: string, questions: { readonly [key: string]: InputRequest }) => string;
}

/** One wait for a change: only a bound, the loop around it waits on. */
const waitMs = 600_000;

/**
 * `tasks/get`, `tasks/result` and `tasks/cancel` of revision 2025-11-25, from the same records. Unlike in the
 * extension, a cancel stands when it is answered, and the result is fetched by a call that waits for it.
 */
export class TaskMethods2025 {
  readonly statuses: StatusWatch;
  readonly #context: TaskMethods2025Context;
  /** Who puts the questions of a task, by connection. */
  readonly #asking = new WeakMap<object, Map<string, ResultQuestions>>();

  constructor(context: TaskMethods2025Context) {
    this.#context = context;
    this.statuses = new StatusWatch(context.lifecycle);
  }

  get(taskId: unknown, caller: Caller2025): Promise<JsonObject> {
    return this.#serve(caller, async (scope) =>
      this.#view(await this.#context.lifecycle.getTask(taskId as string, { scope }), caller),
    );
  }

  /** Spec "Task Cancellation": "MUST transition the task to `cancelled` status before sending the response"; of a terminal one "MUST reject". */
  cancel(taskId: unknown, caller: Caller2025): Promise<JsonObject> {
    return this.#serve(caller, async (scope) => {
      const { lifecycle } = this.#context;
      const { status } = await lifecycle.getTask(taskId as string, { scope });
      if (!isTerminal(status)) await lifecycle.cancelTask(taskId as string, { scope, atOnce: true });
      const task = await lifecycle.getTask(taskId as string, { scope });
      // It may have finished first: then its result stands, and the cancel was too late.
      if (isTerminal(status) || task.status !== "cancelled")
        throw jsonRpcError(rpcCode.invalidParams, `The task cannot be cancelled: it is ${shown(task)}.`);
      return this.#view(task, caller);
    });
  }

  /** Spec "Result Retrieval": blocks until the task is terminal, then gives what the call itself would have given. */
  result(taskId: unknown, caller: Caller2025): Promise<JsonObject> {
    return this.#serve(caller, async (scope) => {
      const task = await this.#untilTerminal(taskId as string, scope, caller);
      if (task.status === "completed") {
        const meta = task.result["_meta"] as JsonObject | undefined;
        return { ...task.result, _meta: { ...meta, ...relatedTo(task.taskId) } };
      }
      if (task.status === "failed") throw jsonRpcError(task.error.code, task.error.message, task.error.data);
      throw jsonRpcError(rpcCode.internalError, "The task was cancelled; it has no result.");
    });
  }

  async #untilTerminal(taskId: string, scope: string | undefined, caller: Caller2025): Promise<DetailedTask> {
    const { lifecycle } = this.#context;
    let task = await lifecycle.getTask(taskId, { scope });
    if (isTerminal(task.status)) return task;
    const { questions, done } = this.#takeOver(taskId, scope, caller);
    try {
      for (;;) {
        // The wait begins before the look: what changes in between ends it.
        const change = lifecycle.waitForChange(taskId, { scope, timeoutMs: waitMs, signal: caller.signal });
        change.catch(() => undefined);
        task = await lifecycle.getTask(taskId, { scope });
        if (isTerminal(task.status)) return task;
        questions.put(task.status === "input_required" ? task.inputRequests : {});
        await change;
      }
    } finally {
      done();
    }
  }

  /**
   * The newest wait of a connection puts the questions: where a lost socket is not noticed, the one before may be asking
   * nobody.
   */
  #takeOver(
    taskId: string,
    scope: string | undefined,
    { client, connection }: Caller2025,
  ): { readonly questions: ResultQuestions; readonly done: () => void } {
    const { lifecycle, tellError } = this.#context;
    const questions = new ResultQuestions({
      taskId,
      client,
      answer: (wireKey, response) => lifecycle.updateTask(taskId, { [wireKey]: response }, { scope }),
      onError: tellError,
    });
    const asking = this.#asking.get(connection) ?? new Map<string, ResultQuestions>();
    this.#asking.set(connection, asking);
    asking.get(taskId)?.stop();
    asking.set(taskId, questions);
    const done = (): void => {
      questions.stop();
      if (asking.get(taskId) === questions) asking.delete(taskId);
    };
    return { questions, done };
  }

  /** A client that cannot be asked is told who can answer. */
  #view(task: DetailedTask, { client }: Caller2025): JsonObject {
    const view = toTask2025(task);
    if (task.status !== "input_required") return view;
    const unasked = Object.values(task.inputRequests).some((question) => !canAsk(question, client));
    return unasked
      ? { ...view, statusMessage: this.#context.describeQuestions(task.taskId, task.inputRequests) }
      : view;
  }

  async #serve(
    caller: Caller2025,
    serve: (scope: string | undefined) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    try {
      return await serve(await this.#context.resolveScope(caller.request));
    } catch (error) {
      // The client ended the call: nobody is told anything, and nothing is wrong.
      if (caller.signal.aborted) throw jsonRpcError(rpcCode.internalError, "The call was cancelled.");
      throw this.#context.tellError(error);
    }
  }
}

function shown(task: DetailedTask): string {
  return toTask2025(task).status;
}
