import { isLongJobsError, isTerminal, toTask2025 } from "@longjobs/core";
import type { DetailedTask, JsonObject, Task2025, TaskLifecycle, TaskStatus } from "@longjobs/core";
import { jsonRpcError, rpcCode, toJsonRpcError } from "./json-rpc-error.ts";
import { SdkMessages, type SdkTaskMessageQueue } from "./sdk-messages.ts";
import { minWishedMs } from "./task-options.ts";

/** The `TaskStore` of SDK v1, as it is met by shape. */
export interface SdkTaskStore {
  createTask(
    params: { readonly ttl?: number | null; readonly pollInterval?: number },
    requestId: string | number,
    request: { readonly method: string; readonly params?: object },
    sessionId?: string,
  ): Promise<Task2025>;
  getTask(taskId: string, sessionId?: string): Promise<Task2025 | null>;
  storeTaskResult(
    taskId: string,
    status: "completed" | "failed",
    result: { readonly [member: string]: unknown },
    sessionId?: string,
  ): Promise<void>;
  getTaskResult(taskId: string, sessionId?: string): Promise<{ [member: string]: unknown }>;
  updateTaskStatus(
    taskId: string,
    status: TaskStatus,
    statusMessage?: string,
    sessionId?: string,
  ): Promise<void>;
  listTasks(cursor?: string, sessionId?: string): Promise<{ tasks: Task2025[]; nextCursor?: string }>;
}

/** Options of {@link asSdkTaskStore}. */
export interface SdkTaskStoreOptions {
  /**
   * Whose tasks a request may see. The SDK tells a store nothing but the session: a server with users keeps them in an
   * `AsyncLocalStorage` and reads it here. @default each session its own; without sessions whoever has the id
   */
  readonly scope?: (sessionId: string | undefined) => string | undefined;
}

/** The two objects that an `McpServer` of SDK v1 takes. */
export interface SdkTaskMachinery {
  readonly taskStore: SdkTaskStore;
  readonly taskMessageQueue: SdkTaskMessageQueue;
}

/**
 * The records of longjobs for a server that uses the task machinery of SDK v1 itself:
 * `new McpServer(info, { capabilities, ...asSdkTaskStore(tasks) })` and `registerToolTask`. New tools are better off with
 * `taskTool` and `attach`, because this way
 *
 * - records survive a restart, questions do not: the SDK sends them under numbers that mean something else in the next process. They wait in
 *   memory, and a task that was working ends as interrupted;
 * - a question reaches only a client that calls `tasks/result`; after a plain call of an optional tool nobody is asked;
 * - `tasks/list` shows the tasks that this process made, of its last 10,000;
 * - a task belongs to its session unless `scope` says otherwise, and is out of reach when the session is over.
 */
export function asSdkTaskStore(
  tasks: { readonly lifecycle: TaskLifecycle },
  options: SdkTaskStoreOptions = {},
): SdkTaskMachinery {
  const scopeOf =
    options.scope ?? ((sessionId) => (sessionId === undefined ? undefined : `session ${sessionId}`));
  const store = new RecordsAsSdkStore(tasks.lifecycle, scopeOf);
  return {
    taskStore: store,
    taskMessageQueue: new SdkMessages((taskId, sessionId) => store.maySee(taskId, sessionId)),
  };
}

const pageSize = 100;
/** Enough for people to look through; what is no longer listed can still be read by its id. */
const maxListed = 10_000;

class RecordsAsSdkStore implements SdkTaskStore {
  readonly #lifecycle: TaskLifecycle;
  readonly #scopeOf: (sessionId: string | undefined) => string | undefined;
  /** The scope of every task that can be listed, oldest first. */
  readonly #made = new Map<string, string | undefined>();
  /** Tasks whose tool said that it waits for its client. Only the tool knows, so it is forgotten with the process. */
  readonly #asking = new Set<string>();

  constructor(lifecycle: TaskLifecycle, scopeOf: (sessionId: string | undefined) => string | undefined) {
    this.#lifecycle = lifecycle;
    this.#scopeOf = scopeOf;
  }

  async createTask(
    { ttl, pollInterval }: Parameters<SdkTaskStore["createTask"]>[0],
    _requestId: string | number,
    request: { readonly method: string; readonly params?: object },
    sessionId?: string,
  ): Promise<Task2025> {
    const scope = this.#scopeOf(sessionId);
    const { name } = (request.params ?? {}) as { readonly name?: unknown };
    const view = await this.#lifecycle.createTask({
      work: { tool: typeof name === "string" ? name : request.method },
      ...(scope === undefined ? {} : { scope }),
      ...(pollInterval === undefined ? {} : { pollIntervalMs: Math.ceil(pollInterval) }),
      ...(typeof ttl === "number" ? { retentionMs: Math.max(Math.ceil(ttl), minWishedMs) } : {}),
    });
    this.#made.set(view.taskId, scope);
    const [oldest] = this.#made.keys();
    if (this.#made.size > maxListed && oldest !== undefined) this.#made.delete(oldest);
    return toTask2025(view);
  }

  async getTask(taskId: string, sessionId?: string): Promise<Task2025 | null> {
    try {
      return this.#view(await this.#read(taskId, sessionId));
    } catch (error) {
      if (isLongJobsError(error, "unknown_task")) return null;
      throw toJsonRpcError(error);
    }
  }

  /** A failure of this revision is a tool error of ours. @throws `lease_lost` when the task has ended: a late result is dropped. */
  async storeTaskResult(
    taskId: string,
    status: "completed" | "failed",
    result: { readonly [member: string]: unknown },
  ): Promise<void> {
    const kept = status === "failed" ? { ...result, isError: true } : result;
    await this.#lifecycle.handle(taskId).complete(kept as JsonObject);
    this.#asking.delete(taskId);
  }

  async getTaskResult(taskId: string, sessionId?: string): Promise<{ [member: string]: unknown }> {
    const task = await this.#read(taskId, sessionId);
    if (task.status === "completed") return { ...task.result };
    if (task.status === "failed") throw jsonRpcError(task.error.code, task.error.message, task.error.data);
    throw jsonRpcError(rpcCode.internalError, `The task has no result; it is ${task.status}.`);
  }

  async updateTaskStatus(
    taskId: string,
    status: TaskStatus,
    statusMessage?: string,
    sessionId?: string,
  ): Promise<void> {
    const task = await this.#read(taskId, sessionId);
    if (isTerminal(task.status))
      throw jsonRpcError(rpcCode.invalidParams, `The task has ended; it is ${toTask2025(task).status}.`);
    if (status === "input_required") this.#asking.add(taskId);
    else this.#asking.delete(taskId);
    if (status === "cancelled")
      return this.#lifecycle.cancelTask(taskId, { scope: this.#scopeFor(taskId, sessionId), atOnce: true });
    const handle = this.#lifecycle.handle(taskId);
    if (status === "completed") return handle.complete({ content: [] });
    if (status === "failed")
      return handle.fail({ code: rpcCode.internalError, message: statusMessage ?? "The task failed." });
    if (statusMessage !== undefined) await handle.progress(statusMessage);
  }

  async listTasks(cursor?: string, sessionId?: string): Promise<{ tasks: Task2025[]; nextCursor?: string }> {
    const scope = this.#scopeOf(sessionId);
    const ids = [...this.#made].flatMap(([taskId, owner]) => (owner === scope ? [taskId] : []));
    const from = cursor === undefined ? 0 : ids.indexOf(cursor) + 1;
    if (cursor !== undefined && from === 0)
      throw jsonRpcError(rpcCode.invalidParams, "The cursor is not known.");
    const page = ids.slice(from, from + pageSize);
    const found = await Promise.all(page.map((taskId) => this.getTask(taskId, sessionId)));
    const last = page.at(-1);
    return {
      tasks: found.filter((task) => task !== null),
      ...(last === undefined || from + pageSize >= ids.length ? {} : { nextCursor: last }),
    };
  }

  /** True unless a session asks for what is another's. */
  maySee(taskId: string, sessionId: string | undefined): boolean {
    return !this.#made.has(taskId) || this.#made.get(taskId) === this.#scopeFor(taskId, sessionId);
  }

  /** SDK 1.29 leaves the session out of some of its own calls; then the task is the one it was already asked for. */
  #scopeFor(taskId: string, sessionId: string | undefined): string | undefined {
    return sessionId === undefined && this.#made.has(taskId)
      ? this.#made.get(taskId)
      : this.#scopeOf(sessionId);
  }

  /** The SDK cannot run a tool again: a task that nobody holds any more ends as interrupted. */
  async #read(taskId: string, sessionId: string | undefined): Promise<DetailedTask> {
    const call = { scope: this.#scopeFor(taskId, sessionId) };
    const task = await this.#lifecycle.getTask(taskId, call);
    return isTerminal(task.status) || this.#made.has(taskId)
      ? task
      : this.#lifecycle.endIfOrphan(taskId, call);
  }

  #view(task: DetailedTask): Task2025 {
    const view = toTask2025(task);
    if (isTerminal(task.status)) this.#asking.delete(task.taskId);
    return this.#asking.has(task.taskId) ? { ...view, status: "input_required" } : view;
  }
}
