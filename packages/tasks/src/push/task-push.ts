import { LongJobsError, TASKS_EXTENSION_ID } from "@longjobs/core";
import type { RequestContext, Schedule, TaskLifecycle } from "@longjobs/core";
import { jsonRpcError, missingTasksExtension, rpcCode } from "../json-rpc-error.ts";
import type { ScopeResolver } from "../scope.ts";
import type { TaskListen } from "./listen-request.ts";
import type { ResolvedPushOptions } from "./push-options.ts";
import { TaskSubscription } from "./task-subscription.ts";

/** What push needs. */
export interface TaskPushParts {
  readonly lifecycle: TaskLifecycle;
  readonly resolveScope: ScopeResolver;
  /** The error as the client is told it; a fault of the server is reported on the way. */
  readonly tellError: (error: unknown) => Error;
  readonly options: ResolvedPushOptions;
  readonly schedule: Schedule;
  readonly now: () => number;
}

/** Who listens. */
export interface Listener {
  readonly request: RequestContext;
  /** The handler or the connection that the request came over. */
  readonly entry: object;
}

/** `notifications/tasks` for those who listen: the subscriptions of every entry, and their limits. */
export class TaskPush {
  readonly schedule: Schedule;
  readonly now: () => number;
  readonly #parts: TaskPushParts;
  readonly #open = new Map<TaskSubscription, object>();
  readonly #counts = new Map<unknown, number>();

  constructor(parts: TaskPushParts) {
    this.#parts = parts;
    this.schedule = parts.schedule;
    this.now = parts.now;
  }

  get keepAliveMs(): number | null {
    return this.#parts.options.keepAliveMs;
  }

  /** The error as the client is told it. */
  tellError(error: unknown): Error {
    return this.#parts.tellError(error);
  }

  /**
   * Opens a subscription to those of the tasks that the listener may see: an unknown and a foreign id are left out alike.
   *
   * @throws a JSON-RPC error that is meant for the client, or what {@link tellError} makes one of.
   */
  async open(listen: TaskListen, { entry, request }: Listener): Promise<TaskSubscription> {
    if (!listen.declaresTasks) throw missingTasksExtension(TASKS_EXTENSION_ID);
    const taskIds = this.#readTaskIds(listen.taskIds);
    const scope = await this.#parts.resolveScope(request);
    const giveBack = this.#reserve(request.transport === "http" ? scope : entry);
    const subscription = new TaskSubscription(listen.id, () => {
      this.#open.delete(subscription);
      giveBack();
    });
    this.#open.set(subscription, entry);
    await subscription.open((onChange) => this.#parts.lifecycle.followTasks(taskIds, { scope, onChange }));
    return subscription;
  }

  /** Ends every subscription, or those of an entry, and tells its client. */
  async close(entry?: object): Promise<void> {
    const ending = Array.from(this.#open).filter(([, of]) => entry === undefined || of === entry);
    await Promise.all(ending.map(([subscription]) => subscription.finish(this.schedule)));
  }

  #readTaskIds(taskIds: unknown): readonly string[] {
    if (!Array.isArray(taskIds) || !taskIds.every((taskId) => typeof taskId === "string"))
      throw jsonRpcError(rpcCode.invalidParams, "notifications.taskIds must be a list of task ids.");
    const { maxTaskIds } = this.#parts.options;
    if (taskIds.length <= maxTaskIds) return taskIds;
    throw new LongJobsError("invalid_request", `${taskIds.length} tasks are too many for one subscription.`, {
      param: "notifications.taskIds",
      recoveryHint: `Name at most ${maxTaskIds} tasks, and open another subscription for the others.`,
    });
  }

  /** Takes a place; the returned function gives it back. @throws a JSON-RPC error with `quota_exceeded` */
  #reserve(client: unknown): () => void {
    const { maxSubscriptions, maxSubscriptionsPerClient } = this.#parts.options;
    if (this.#open.size >= maxSubscriptions) throw tooManySubscriptions("this server", maxSubscriptions);
    const count = this.#counts.get(client) ?? 0;
    // Where everyone shares nobody can be told apart.
    if (client !== undefined && count >= maxSubscriptionsPerClient)
      throw tooManySubscriptions("this client", maxSubscriptionsPerClient);
    this.#counts.set(client, count + 1);
    return () => {
      const left = (this.#counts.get(client) ?? 1) - 1;
      if (left === 0) this.#counts.delete(client);
      else this.#counts.set(client, left);
    };
  }
}

/** Told in full, and no fault of the server to report: the client can close one, or poll. */
function tooManySubscriptions(whose: string, count: number): Error {
  const message = `The subscriptions to tasks of ${whose}, at most ${count}, are all taken.`;
  const error = new LongJobsError("quota_exceeded", message, {
    retryable: true,
    recoveryHint:
      "Close one, or name several tasks in one subscription. Without a subscription tasks/get answers.",
  });
  return jsonRpcError(rpcCode.internalError, error.message, error.toJSON());
}
