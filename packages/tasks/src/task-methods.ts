import { TASKS_EXTENSION_ID, type JsonObject, type RequestContext, type TaskLifecycle } from "@longjobs/core";
import { jsonRpcError, missingTasksExtension, rpcCode } from "./json-rpc-error.ts";
import type { ScopeResolver } from "./scope.ts";
import { acknowledgement, toGetTaskResult } from "./task-wire.ts";

/** Who calls a task method, and with what right. */
export interface TaskCaller {
  readonly request: RequestContext;
  readonly declaresTasks: boolean;
  /** True for revision 2026-07-28: earlier ones do not have these methods. */
  readonly modern: boolean;
}

/** The answers of a `tasks/update`. */
export interface TaskAnswers {
  readonly inputResponses: { readonly [wireKey: string]: unknown };
  readonly malformedKeys: readonly string[];
}

/** What the task methods need. */
export interface TaskMethodsContext {
  readonly lifecycle: TaskLifecycle;
  readonly resolveScope: ScopeResolver;
  /** The error as the client is told it; a fault of the server is reported on the way. */
  readonly tellError: (error: unknown) => Error;
}

/**
 * `tasks/get`, `tasks/update` and `tasks/cancel` of revision 2026-07-28. A call that does not declare the
 * extension is refused with -32021 before anything is read or written; an unknown, expired or foreign id is
 * -32602.
 */
export class TaskMethods {
  readonly #context: TaskMethodsContext;

  constructor(context: TaskMethodsContext) {
    this.#context = context;
  }

  get(taskId: unknown, caller: TaskCaller): Promise<JsonObject> {
    return this.#serve(caller, async (scope) =>
      toGetTaskResult(await this.#context.lifecycle.getTask(taskId as string, { scope })),
    );
  }

  /** @param readAnswers - Called behind the gate; throws for an update without answers. */
  update(taskId: unknown, readAnswers: () => TaskAnswers, caller: TaskCaller): Promise<JsonObject> {
    return this.#serve(caller, async (scope) => {
      const { inputResponses, malformedKeys } = readAnswers();
      await this.#context.lifecycle.updateTask(taskId as string, inputResponses, { scope, malformedKeys });
      return acknowledgement;
    });
  }

  cancel(taskId: unknown, caller: TaskCaller): Promise<JsonObject> {
    return this.#serve(caller, async (scope) => {
      await this.#context.lifecycle.cancelTask(taskId as string, { scope });
      return acknowledgement;
    });
  }

  async #serve(
    caller: TaskCaller,
    serve: (scope: string | undefined) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    if (!caller.modern)
      throw jsonRpcError(rpcCode.methodNotFound, "This method belongs to protocol revision 2026-07-28.");
    if (!caller.declaresTasks) throw missingTasksExtension(TASKS_EXTENSION_ID);
    try {
      return await serve(await this.#context.resolveScope(caller.request));
    } catch (error) {
      throw this.#context.tellError(error);
    }
  }
}
