/*
 * How tasks are served through the TypeScript SDK v1 (`@modelcontextprotocol/sdk` from 1.29), an `McpServer` or a low-level
 * `Server`.
 *
 * Both keep what stands behind a method in one private map. Ours stands in front for `tools/list` and `tools/call`, checks and
 * lists its own tools, and leaves every other tool to the server: neither the SDK's own checks nor its own task
 * machinery ever see a call of ours.
 */
import { normalizeJson, readRequestContext } from "@longjobs/core";
import type { JsonObject } from "@longjobs/core";
import { askFirst, isNotAnswered } from "./ask-first.ts";
import { errorReply } from "./describe-task.ts";
import { dropUndefined } from "./drop-undefined.ts";
import { editToolList, type ListedTool } from "./edit-tool-list.ts";
import type { FallbackTool } from "./fallback-tools.ts";
import { splitKeyArgument } from "./idempotency-key.ts";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import { toListedSchema, type ListedSchema } from "./listed-schema.ts";
import { progressSender } from "./progress-sender.ts";
import { answersInJson, FrontedHandlers, openV1 } from "./sdk-v1.ts";
import type { OpenedV1, RawHandler, RawRequest, ServerV1, V1Extra, V1Server } from "./sdk-v1.ts";
import type { SeamContext } from "./seam-context.ts";
import { describeIssues } from "./standard-schema.ts";
import { longestTimeoutMs, toTaskWish, type Caller2025, type Client2025 } from "./tasks-2025/client-2025.ts";
import {
  notAsTask,
  readTaskParam,
  refusedText,
  tasksCapability2025,
  toCreateTaskResult2025,
} from "./tasks-2025/wire-2025.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** A tool of ours on one server. */
interface OwnTool {
  readonly listed: ListedTool;
  readonly input: ListedSchema | undefined;
  readonly output: ListedSchema | undefined;
  /** Runs a call whose arguments have been checked. */
  readonly serve: (args: unknown, request: RawRequest, extra: V1Extra) => Promise<JsonObject>;
  /** Absent for the tools that stand in for tasks: those are never tasks themselves. */
  readonly taskTool?: TaskTool;
}

const attached = new WeakSet<object>();

/** True for a server of this SDK. */
export function isServerV1(server: unknown): boolean {
  return openV1(server) !== undefined;
}

/**
 * Puts longjobs in front of a server, before it connects. The returned function registers a task tool there.
 *
 * @throws Error when the server is connected or attached already, or serves task methods itself.
 */
export function attachV1(server: ServerV1, context: SeamContext): (tool: TaskTool) => void {
  const opened = openV1(server);
  if (opened === undefined) throw new TypeError("This is no server of @modelcontextprotocol/sdk.");
  const sdk = opened.server;
  assertAttachable(sdk);
  attached.add(sdk);
  sdk.registerCapabilities({ tools: { listChanged: true }, ...tasksCapability2025 });
  if (sdk._jsonSchemaValidator !== undefined) context.useValidator(sdk._jsonSchemaValidator);
  const seam = new SeamV1(opened, context);
  return (tool) => seam.register(tool);
}

const taskMethods = ["tasks/get", "tasks/result", "tasks/cancel"] as const;

function assertAttachable(sdk: V1Server): void {
  if (attached.has(sdk)) throw new Error("longjobs is attached to this server already.");
  if (sdk.transport !== undefined) throw new Error("Attach longjobs before the server connects.");
  for (const method of taskMethods) sdk.assertCanSetRequestHandler(method);
}

class SeamV1 {
  readonly #sdk: V1Server;
  readonly #theirs: OpenedV1["toolsOf"];
  readonly #context: SeamContext;
  readonly #tools = new Map<string, OwnTool>();
  #era = "2025-11-25";

  constructor({ server, toolsOf }: OpenedV1, context: SeamContext) {
    this.#sdk = server;
    this.#theirs = toolsOf;
    this.#context = context;
    server._requestHandlers = new FrontedHandlers(server._requestHandlers, {
      initialize: (inner, request, extra) => this.#initialize(inner, request, extra),
      "tools/list": (inner, request, extra) => this.#list(inner, request, extra),
      "tools/call": (inner, request, extra) => this.#call(inner, request, extra),
    });
    const { methods2025 } = context;
    for (const method of taskMethods) {
      const serve = { "tasks/get": "get", "tasks/result": "result", "tasks/cancel": "cancel" } as const;
      server._requestHandlers.set(method, ({ params }, extra) =>
        methods2025[serve[method]](params?.["taskId"], this.#caller(extra)),
      );
    }
  }

  register(tool: TaskTool): void {
    this.#add(tool.name, tool.config, {
      taskTool: tool,
      serve: (args, request, extra) => this.#serveTask(tool, args, request, extra),
    });
    if (tool.fallback === "tools") {
      for (const fallbackTool of this.#context.fallbackTools) {
        if (this.#tools.has(fallbackTool.name)) continue;
        this.#add(fallbackTool.name, fallbackTool.config, {
          serve: (args, _request, extra) => this.#serveFallback(fallbackTool, args, extra),
        });
      }
    }
    // Nobody waits for it: a client that has gone needs no list.
    if (this.#sdk.transport !== undefined) this.#sdk.sendToolListChanged().catch(() => undefined);
  }

  #add(name: string, config: TaskTool["config"], rest: Pick<OwnTool, "serve" | "taskTool">): void {
    if (Object.hasOwn(this.#theirs(), name)) throw new Error(`Tool ${name} is already registered`);
    const input = toListedSchema(`inputSchema of ${name}`, config.inputSchema, "input");
    const output = toListedSchema(`outputSchema of ${name}`, config.outputSchema, "output");
    const { title, description, annotations, _meta } = config;
    const listed = {
      name,
      title,
      description,
      inputSchema: input?.json ?? { type: "object", properties: {} },
      outputSchema: output?.json,
      annotations,
      execution: { taskSupport: rest.taskTool?.taskSupport ?? "forbidden" },
      _meta,
    };
    this.#tools.set(name, { listed: dropUndefined(listed) as ListedTool, input, output, ...rest });
  }

  async #initialize(inner: RawHandler | undefined, request: RawRequest, extra: V1Extra): Promise<unknown> {
    const result = (await inner?.(request, extra)) as { readonly protocolVersion?: unknown } | undefined;
    if (typeof result?.protocolVersion === "string") this.#era = result.protocolVersion;
    return result;
  }

  async #list(inner: RawHandler | undefined, request: RawRequest, extra: V1Extra): Promise<unknown> {
    const result = ((await inner?.(request, extra)) ?? { tools: [] }) as {
      readonly tools: readonly ListedTool[];
    };
    const theirs = result.tools.filter(({ name }) => !this.#tools.has(name));
    // A list may come in pages: ours are on the first.
    if (request.params?.["cursor"] !== undefined) return { ...result, tools: theirs };
    const all = [...theirs, ...[...this.#tools.values()].map(({ listed }) => listed)];
    const taskTools = new Map(
      [...this.#tools].flatMap(([name, { taskTool }]) => (taskTool === undefined ? [] : [[name, taskTool]])),
    );
    return {
      ...result,
      tools: editToolList(all, {
        declaresTasks: false,
        modern: false,
        taskTools,
        fallbackNames: new Set(),
      }),
    };
  }

  async #call(inner: RawHandler | undefined, request: RawRequest, extra: V1Extra): Promise<unknown> {
    const name = request.params?.["name"];
    if (typeof name !== "string") throw jsonRpcError(rpcCode.invalidParams, "name must be a string.");
    const own = this.#tools.get(name);
    if (own === undefined) return this.#callTheirs(inner, name, request, extra);
    try {
      return await this.#callOwn(own, request, extra);
    } catch (error) {
      throw this.#context.tellError(error);
    }
  }

  /** The SDK would run a plain tool first and refuse its result then. */
  #callTheirs(inner: RawHandler | undefined, name: string, request: RawRequest, extra: V1Extra): unknown {
    const theirs = this.#theirs();
    const handler = Object.hasOwn(theirs, name) ? theirs[name]?.handler : undefined;
    const servesTasks = typeof handler === "object" && handler !== null && "createTask" in handler;
    const isPlain = Object.hasOwn(theirs, name) && !servesTasks;
    if (isPlain && request.params?.["task"] !== undefined) throw notAsTask(name);
    if (inner === undefined) throw jsonRpcError(rpcCode.invalidParams, `Tool ${name} not found`);
    return inner(request, extra);
  }

  async #callOwn(own: OwnTool, request: RawRequest, extra: V1Extra): Promise<JsonObject> {
    const { name } = own.listed;
    const wish = readTaskParam(request.params?.["task"]);
    if (own.taskTool === undefined && wish !== undefined) throw notAsTask(name);
    if (own.taskTool?.taskSupport === "required" && wish === undefined)
      throw jsonRpcError(rpcCode.methodNotFound, `The tool ${name} can only be called as a task.`);
    const { rest: given } = splitKeyArgument(own.taskTool, request.params?.["arguments"] ?? {});
    if (own.input === undefined) return own.serve({}, request, extra);
    const checked = await own.input.schema["~standard"].validate(given);
    if (checked.issues === undefined) return own.serve(checked.value, request, extra);
    const words = `Input validation error: Invalid arguments for tool ${name}: ${describeIssues(checked.issues)}`;
    // A call that wants a task can only be answered by one, or by an error.
    if (wish !== undefined) throw jsonRpcError(rpcCode.invalidParams, words);
    return { content: [{ type: "text", text: `MCP error -32602: ${words}` }], isError: true };
  }

  async #serveTask(tool: TaskTool, args: unknown, request: RawRequest, extra: V1Extra): Promise<JsonObject> {
    const call = this.#toolCall(tool, request, extra);
    const client = this.#client(extra);
    try {
      const served = await askFirst(call, client, (each) => this.#context.serve(tool, args, each));
      if (served.kind === "task" && call.taskWish !== undefined) {
        // One of an earlier call has its connection, or has ended.
        if (client.notify !== undefined && served.found === undefined)
          this.#context.methods2025.statuses.watch(served.view.taskId, client.notify);
        return toCreateTaskResult2025(served.view, this.#context.describeAccepted(tool, served));
      }
      if (served.kind === "task") return this.#context.describeStarted(served);
      if (call.taskWish === undefined) return served.result;
      throw jsonRpcError(rpcCode.invalidParams, refusedText(served.result));
    } catch (error) {
      if (!isNotAnswered(error)) throw error;
      const envelope = error.toJSON() as unknown as JsonObject;
      if (call.taskWish !== undefined) throw jsonRpcError(rpcCode.invalidParams, error.message, envelope);
      return errorReply(envelope);
    }
  }

  #serveFallback(tool: FallbackTool, args: unknown, extra: V1Extra): Promise<JsonObject> {
    const sendProgress = this.#progress(extra);
    return tool.serve(args, {
      request: this.#request(extra),
      signal: extra.signal,
      ...(sendProgress === undefined ? {} : { sendProgress }),
    });
  }

  #toolCall(tool: TaskTool, { params }: RawRequest, extra: V1Extra): ToolCall {
    const capabilities = dropUndefined(this.#sdk.getClientCapabilities()) as JsonObject | undefined;
    const output = this.#tools.get(tool.name)?.output;
    const wish = readTaskParam(params?.["task"]);
    const sendProgress = this.#progress(extra);
    const { rest, keyArgument } = splitKeyArgument(tool, params?.["arguments"] ?? {});
    return {
      request: this.#request(extra),
      client: { era: this.#era, ...(capabilities === undefined ? {} : { capabilities }) },
      declaresTasks: false,
      modern: false,
      rawArguments: normalizeJson(dropUndefined(rest), "arguments"),
      keyArgument,
      signal: extra.signal,
      malformedKeys: [],
      ...(wish === undefined
        ? {}
        : { taskWish: toTaskWish(wish, this.#client(extra), extra._meta?.progressToken) }),
      ...(output === undefined ? {} : { outputSchema: output.schema }),
      ...(sendProgress === undefined ? {} : { sendProgress }),
    };
  }

  #caller(extra: V1Extra): Caller2025 {
    return {
      request: this.#request(extra),
      signal: extra.signal,
      client: this.#client(extra),
      connection: this.#sdk,
    };
  }

  /** A stateless server does not know its clients, and their answers go to another instance. */
  #client(extra: V1Extra): Client2025 {
    const capabilities = this.#sdk.getClientCapabilities();
    const askable = capabilities === undefined || answersInJson(this.#sdk) ? {} : capabilities;
    return {
      askable,
      ask: (question, signal) =>
        extra.sendRequest(question, anyResult, { timeout: longestTimeoutMs, signal }),
      ...(capabilities === undefined ? {} : { notify: (sent: object) => this.#sdk.notification(sent) }),
    };
  }

  #request(extra: V1Extra): Caller2025["request"] {
    const isMemory = this.#sdk.transport?.constructor.name === "InMemoryTransport";
    return readRequestContext(extra, isMemory ? "memory" : "stdio");
  }

  #progress(extra: V1Extra): ReturnType<typeof progressSender> {
    return progressSender(extra._meta?.progressToken, (notification) => extra.sendNotification(notification));
  }
}

const anyResult = { safeParse: (data: unknown) => ({ success: true as const, data }) };
