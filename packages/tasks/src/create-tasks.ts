import {
  defaultJsonLimits,
  isLongJobsError,
  reportBackgroundError,
  TaskLifecycle,
  type CloseOptions,
  type JsonLimits,
  type ResultSpill,
  type DetailedTask,
  type LifecycleStats,
  type TaskLifecycleOptions,
} from "@longjobs/core";
import {
  describeAcceptedTask,
  describeFoundTask,
  describeQuestions,
  describeStartedTask,
} from "./describe-task.ts";
import { resolveFallbackOptions, type FallbackOptions } from "./fallback-options.ts";
import { createFallbackTools } from "./fallback-tools.ts";
import { inlineClock } from "./inline-clock.ts";
import { tellError } from "./json-rpc-error.ts";
import { resolvePushOptions, type PushOptions } from "./push/push-options.ts";
import { TaskPush } from "./push/task-push.ts";
import { wrapHandler, type WrappableHandler } from "./push/wrap-handler.ts";
import { wrapTransport, type WrappableTransport } from "./push/wrap-transport.ts";
import { RequestStates } from "./request-state.ts";
import { resolveScopeOption, type ScopeOption, type ScopeResolver } from "./scope.ts";
import type { ServerV1 } from "./sdk-v1.ts";
import type { McpServerV2 } from "./sdk-v2.ts";
import type { SeamContext } from "./seam-context.ts";
import { attachV1, isServerV1 } from "./seam-v1.ts";
import { attachV2 } from "./seam-v2.ts";
import { serveToolCall } from "./serve-tool-call.ts";
import type { SchemaOutput, ToolSchema } from "./standard-schema.ts";
import { TaskMethods } from "./task-methods.ts";
import { TaskMethods2025 } from "./tasks-2025/task-methods-2025.ts";
import type { SpillOptions } from "./spill-result.ts";
import { ToolRunner, type Executor } from "./tool-runner.ts";
import { resolveTaskTool } from "./tool-config.ts";
import type { AnyToolConfig, TaskTool, TaskToolConfig, ToolHandler } from "./tool-config.ts";
import { AnswerValidator } from "./validate-input.ts";

/** Options of {@link createTasks}: those of the engine, and whose tasks they are. */
export interface TasksOptions extends Omit<
  TaskLifecycleOptions,
  "validateRequest" | "validateAnswer" | "runner"
> {
  /** Runs the handlers elsewhere: this server accepts calls and answers for them. @default in this process */
  readonly executor?: Executor;
  /**
   * Whose task a call is about. `null`: everyone who can reach the server shares its tasks.
   * @default over HTTP `clientId`, `extra.iss` and `extra.sub` of the auth info together, all required; one user elsewhere
   */
  readonly scope?: ScopeOption;
  /**
   * A place for results that are too large for every poll, such as `files.resultSpill()` of `@longjobs/files`: they become files,
   * and are answered with how they begin and a link. @default none: results stay in their tasks
   */
  readonly resultSpill?: ResultSpill;
  /** With `resultSpill`: the largest result that stays in its task, in bytes of JSON text. @default 262_144 */
  readonly maxInlineResultBytes?: number;
  /**
   * Signs what clients carry through `prepare`; at least 32 characters, the same on every instance.
   * @default random: a round that began before a restart is asked for anew
   */
  readonly requestStateSecret?: string;
  /** The tools for clients that do not have tasks. */
  readonly fallbackTools?: FallbackOptions;
  /** What one client may follow at once (see `wrapHandler` and `wrapTransport`). */
  readonly push?: PushOptions;
}

/**
 * A server that longjobs can be attached to: `McpServer` of `@modelcontextprotocol/server`, or `McpServer` or `Server`
 * of `@modelcontextprotocol/sdk`.
 */
export type AttachableServer = McpServerV2 | ServerV1;

/** Durable tasks for any number of servers over one store. */
export interface Tasks {
  /** The engine itself: create tasks without a tool, listen to changes, wait. */
  readonly lifecycle: TaskLifecycle;
  /**
   * Registers a tool whose calls survive: on every server that is attached, and on every one that will be.
   *
   * @throws TypeError, RangeError for its configuration; Error for a name that is taken.
   */
  taskTool<
    const Input extends ToolSchema | undefined = undefined,
    const Output extends ToolSchema | undefined = undefined,
  >(
    name: string,
    config: TaskToolConfig<Input, Output>,
    handler: ToolHandler<SchemaOutput<Input>>,
  ): void;
  /**
   * Serves tasks through a server, and returns that server. Call it before the server connects; in a factory,
   * once per instance.
   *
   * @throws Error for a server that is connected or attached already, and for an SDK that is not known.
   */
  attach<Server extends AttachableServer>(server: Server): Server;
  /**
   * Tells clients of changes as they happen, over HTTP: takes what `createMcpHandler` of `@modelcontextprotocol/server` returns,
   * and returns the same with `notifications/tasks` on `subscriptions/listen`. Without it clients poll, and everything works.
   *
   * @throws TypeError for anything else: transports, and `@modelcontextprotocol/sdk`, have no such subscriptions.
   */
  wrapHandler<Handler extends WrappableHandler>(handler: Handler): Handler;
  /**
   * As {@link wrapHandler} for a single connection: wraps the transport of `serveStdio(factory, { transport })`.
   *
   * @throws TypeError for anything else, and for transports of HTTP.
   */
  wrapTransport<Transport extends WrappableTransport>(transport: Transport): Transport;
  /**
   * Goes on with tasks whose process is gone, each as `onInterrupted` of its tool says, and resolves to how many those
   * were. Happens by itself when tools are registered and every third of `leaseMs`; call it to know when the first time is over.
   *
   * @throws what the store rejects with.
   */
  recover(): Promise<number>;
  /**
   * Runs a task to its end: what a worker calls when a queue has delivered it (see `executor`). A task that has ended, or
   * that must not run again, is not run. Resolves to the task as it then is.
   *
   * @throws `lease_lost`, retryable, while another worker runs it, and `shutdown`, retryable: let the queue deliver it again;
   *   `unknown_task`; TypeError when its tool is not registered here.
   */
  run(taskId: string): Promise<DetailedTask>;
  /** Counts of what is held in memory. */
  stats(): LifecycleStats;
  /** Ends running handlers as `TaskLifecycle.close` does, then subscriptions. The store stays open. */
  close(options?: CloseOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes durable tasks over a store: one object per store and process. Register tools once with
 * {@link Tasks.taskTool}, and attach every server instance with {@link Tasks.attach}.
 */
export function createTasks(options: TasksOptions): Tasks {
  return buildTasks(options).tasks;
}

/** Tasks, and what stands behind them: for a server without an SDK. */
export interface BuiltTasks {
  readonly tasks: Tasks;
  readonly tools: ReadonlyMap<string, TaskTool>;
  readonly seam: SeamContext;
  readonly resolveScope: ScopeResolver;
}

/** {@link createTasks}, with the parts that a simulation needs. */
export function buildTasks(options: TasksOptions): BuiltTasks {
  const {
    scope,
    requestStateSecret,
    fallbackTools,
    executor,
    push: pushOptions,
    resultSpill: _place,
    maxInlineResultBytes: _most,
    ...engine
  } = options;
  assertSecret(requestStateSecret);
  const fallback = resolveFallbackOptions(fallbackTools);
  const pushOptionsResolved = resolvePushOptions(pushOptions);
  const answers = new AnswerValidator();
  const tools = new Map<string, TaskTool>();
  const limits = { ...defaultJsonLimits, ...engine.jsonLimits };
  const spill = resolveSpill(options, limits);
  const lifecycle: TaskLifecycle = new TaskLifecycle({
    ...engine,
    runner: new ToolRunner(tools, executor, () => ({ lifecycle, limits, spill })),
    validateRequest: (request) => answers.findRequestFault(request),
    validateAnswer: (request, response) => answers.findFault(request, response),
  });
  const resolveScope = resolveScopeOption(scope);
  const states = new RequestStates(requestStateSecret ?? randomSecret(), options.now ?? Date.now);
  const elsewhere = executor !== undefined;
  const clock = inlineClock(engine);
  const serveContext = { lifecycle, resolveScope, states, answers, limits, spill, clock, elsewhere };
  const tell = (error: unknown): Error =>
    tellError(error, (fault) => reportBackgroundError(fault, options.onError));
  const seam = {
    methods: new TaskMethods({ lifecycle, resolveScope, tellError: tell }),
    methods2025: new TaskMethods2025({
      lifecycle,
      resolveScope,
      tellError: tell,
      describeQuestions: (taskId, questions) => describeQuestions(taskId, questions, fallback),
    }),
    tellError: tell,
    fallbackTools: createFallbackTools({
      lifecycle,
      resolveScope,
      answers,
      options: fallback,
      tellError: tell,
    }),
    describeStarted: ({ view, found }: Parameters<SeamContext["describeStarted"]>[0]) =>
      found === undefined ? describeStartedTask(view.taskId, fallback) : describeFoundTask(found, fallback),
    describeAccepted: (tool: TaskTool, { view, found }: Parameters<SeamContext["describeAccepted"]>[1]) =>
      // One that an earlier call made may have ended by now.
      found === undefined
        ? describeAcceptedTask(view.taskId, tool.fallback === "tools", fallback)
        : undefined,
    serve: (tool: TaskTool, args: unknown, call: Parameters<typeof serveToolCall>[2]) =>
      serveToolCall(tool, args, call, serveContext),
    useValidator: (validator: Parameters<AnswerValidator["use"]>[0]) => answers.use(validator),
  };
  const tasks = new AttachedTasks({
    lifecycle,
    tools,
    push: new TaskPush({
      lifecycle,
      resolveScope,
      tellError: tell,
      options: pushOptionsResolved,
      schedule: clock.schedule,
      now: options.now ?? Date.now,
    }),
    reservedNames: Object.values(fallback.names),
    attachTo: (server) =>
      isServerV1(server) ? attachV1(server, seam) : attachV2(server as McpServerV2, seam),
    reportError: (error) => reportBackgroundError(error, options.onError),
  });
  return { tasks, tools, seam, resolveScope };
}

/** A result that becomes a file may be larger than a record. */
const maxSpilledBytes = 64 * 1024 * 1024;

function resolveSpill(options: TasksOptions, limits: JsonLimits): SpillOptions | undefined {
  const { maxInlineResultBytes = 262_144, now = Date.now, onError, resultSpill, retentionMs } = options;
  if (!Number.isSafeInteger(maxInlineResultBytes) || maxInlineResultBytes < 1)
    throw new RangeError("maxInlineResultBytes must be a whole number of bytes from 1.");
  if (resultSpill === undefined) return undefined;
  if (typeof (resultSpill as Partial<ResultSpill>).spill !== "function")
    throw new TypeError("resultSpill must be a place for results, such as files.resultSpill().");
  return {
    place: resultSpill,
    maxBytes: maxInlineResultBytes,
    retentionMs: retentionMs === undefined ? dayMs : retentionMs,
    limits: { ...limits, maxBytes: Math.max(limits.maxBytes, maxSpilledBytes) },
    now,
    reportError: (error) => reportBackgroundError(error, onError),
  };
}

/** The engine's own default. */
const dayMs = 24 * 60 * 60 * 1000;

function assertSecret(secret: unknown): void {
  if (secret === undefined) return;
  if (typeof secret !== "string") throw new TypeError("requestStateSecret must be a string.");
  if (secret.length < 32) throw new RangeError("requestStateSecret must have at least 32 characters.");
}

type RegisterTool = (tool: TaskTool) => void;

interface AttachedTasksParts {
  readonly lifecycle: TaskLifecycle;
  readonly tools: Map<string, TaskTool>;
  readonly push: TaskPush;
  readonly reservedNames: readonly string[];
  readonly attachTo: (server: AttachableServer) => RegisterTool;
  readonly reportError: (error: unknown) => void;
}

class AttachedTasks implements Tasks {
  readonly lifecycle: TaskLifecycle;
  readonly #parts: AttachedTasksParts;
  readonly #tools: Map<string, TaskTool>;
  readonly #servers = new LiveServers();
  #recovering = false;

  constructor(parts: AttachedTasksParts) {
    this.#parts = parts;
    this.lifecycle = parts.lifecycle;
    this.#tools = parts.tools;
  }

  taskTool(name: string, config: AnyToolConfig, handler: ToolHandler<never>): void {
    if (this.#tools.has(name)) throw new Error(`The task tool ${name} is registered already.`);
    if (this.#parts.reservedNames.includes(name))
      throw new Error(
        `${name} is the name of a tool of longjobs; change one of them, or fallbackTools.prefix.`,
      );
    const tool = resolveTaskTool(name, config, handler);
    for (const register of this.#servers.all()) register(tool);
    this.#tools.set(name, tool);
    void this.#recoverSoon();
  }

  attach<Server extends AttachableServer>(server: Server): Server {
    const register = this.#parts.attachTo(server);
    for (const tool of this.#tools.values()) register(tool);
    this.#servers.add(server, register);
    return server;
  }

  wrapHandler<Handler extends WrappableHandler>(handler: Handler): Handler {
    return wrapHandler(handler, this.#parts.push);
  }

  wrapTransport<Transport extends WrappableTransport>(transport: Transport): Transport {
    return wrapTransport(transport, this.#parts.push);
  }

  recover(): Promise<number> {
    return this.lifecycle.recover();
  }

  run(taskId: string): Promise<DetailedTask> {
    return this.lifecycle.runTask(taskId);
  }

  stats(): LifecycleStats {
    return this.lifecycle.stats;
  }

  async close(options?: CloseOptions): Promise<void> {
    await this.lifecycle.close(options);
    // Last, so that subscribers hear of what ended while work drained.
    await this.#parts.push.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Once for all tools that are registered in one go. */
  async #recoverSoon(): Promise<void> {
    if (this.#recovering) return;
    this.#recovering = true;
    await Promise.resolve();
    this.#recovering = false;
    try {
      await this.lifecycle.recover();
    } catch (error) {
      // Closed at once: then there is nothing to go on with here.
      if (!isLongJobsError(error, "store_closed")) this.#parts.reportError(error);
    }
  }
}

/**
 * The servers that tools registered later still have to reach. Held weakly: over HTTP each request has a
 * server of its own, and nothing tells when it is done with.
 */
class LiveServers {
  readonly #registers = new WeakMap<object, RegisterTool>();
  #servers: WeakRef<object>[] = [];
  #pruneAt = 64;

  add(server: object, register: RegisterTool): void {
    this.#registers.set(server, register);
    this.#servers.push(new WeakRef(server));
    if (this.#servers.length < this.#pruneAt) return;
    this.#servers = this.#servers.filter((reference) => reference.deref() !== undefined);
    // Twice what is alive: the next look costs no more per server than this one.
    this.#pruneAt = Math.max(64, this.#servers.length * 2);
  }

  all(): RegisterTool[] {
    return this.#servers.flatMap((reference) => this.#registers.get(reference.deref() ?? {}) ?? []);
  }
}

function randomSecret(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
