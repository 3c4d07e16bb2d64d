/*
 * The one file that knows the TypeScript SDK v2 (`@modelcontextprotocol/server` from 2.3).
 *
 * Tools are registered with the SDK's own `registerTool`, so that it checks arguments, lists them and serves
 * multi-round-trip input. Our callback runs the whole call. Two things cannot leave a callback, a task handle
 * and a JSON-RPC error: both wait in a slot, and the raw `tools/call` entry, which stands in front of the
 * SDK's own handler, puts them in the place of what the SDK made of them. The raw entry lives in a private map of
 * the SDK; where that map is missing, `attach` says so.
 */
import { normalizeJson, readRequestContext, TASKS_EXTENSION_ID } from "@longjobs/core";
import type { InputResponse, JsonObject } from "@longjobs/core";
import { dropUndefined } from "./drop-undefined.ts";
import { editToolList, type ListedTool, type ListView } from "./edit-tool-list.ts";
import type { FallbackTool } from "./fallback-tools.ts";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import { progressSender } from "./progress-sender.ts";
import type { Served } from "./serve-tool-call.ts";
import type { StandardResult, StandardSchema } from "./standard-schema.ts";
import type { TaskAnswers, TaskCaller, TaskMethods } from "./task-methods.ts";
import type { TaskMethods2025 } from "./tasks-2025/task-methods-2025.ts";
import { toCreateTaskResult } from "./task-wire.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";
import type { JsonSchemaValidator } from "./validate-input.ts";

/** A `McpServer` of SDK v2, as far as it is used here. */
export interface McpServerV2 {
  readonly server: object;
  registerTool(...args: never[]): unknown;
}

/** What the seam needs of longjobs. */
export interface SeamContext {
  readonly methods: TaskMethods;
  /** The task methods for clients of revision 2025-11-25. */
  readonly methods2025: TaskMethods2025;
  readonly serve: (tool: TaskTool, args: unknown, call: ToolCall) => Promise<Served>;
  /** The error as the client is told it; a fault of the server is reported on the way. */
  readonly tellError: (error: unknown) => Error;
  readonly useValidator: (validator: JsonSchemaValidator) => void;
  /** The tools for clients that do not have tasks. */
  readonly fallbackTools: readonly FallbackTool[];
  /** What such a client gets instead of a task handle. */
  readonly describeStarted: (taskId: string) => JsonObject;
}

/** The private and generic parts of the SDK that are reached for here. */
interface V2Internals {
  readonly server: {
    readonly _requestHandlers: Map<string, RawHandler>;
    readonly _jsonSchemaValidator?: JsonSchemaValidator;
    _requestStateVerify?: VerifyRequestState | undefined;
    readonly transport?: { readonly constructor: { readonly name: string } };
    assertCanSetRequestHandler(method: string): void;
    getNegotiatedProtocolVersion(): string | undefined;
    registerCapabilities(capabilities: object): void;
    setRequestHandler(
      method: string,
      schemas: { readonly params: StandardSchema<TaskParams> },
      handler: (params: TaskParams, ctx: V2Context) => Promise<JsonObject>,
    ): void;
  };
  isConnected(): boolean;
  registerTool(
    name: string,
    config: object,
    callback: (...args: unknown[]) => Promise<unknown>,
  ): RegisteredTool;
}

interface RegisteredTool {
  readonly outputSchema?: StandardSchema;
  remove(): void;
}

/** A server's own check of `requestState`, its `requestState.verify` option. */
type VerifyRequestState = (state: string, ctx: V2Context) => unknown;

type RawHandler = (request: RawRequest, ctx: V2Context) => Promise<unknown>;

interface RawRequest {
  readonly params?: { readonly name?: unknown; readonly arguments?: unknown };
}

interface V2Context {
  readonly mcpReq: {
    readonly _meta?: { readonly progressToken?: string | number };
    readonly envelope?: { readonly [key: string]: unknown };
    readonly inputResponses?: { readonly [key: string]: InputResponse };
    readonly droppedInputResponseKeys?: readonly string[];
    readonly signal: AbortSignal;
    requestState(): unknown;
    notify(notification: object): Promise<void>;
  };
}

interface TaskParams {
  readonly taskId?: unknown;
}

/** What one call carries past the SDK's own handler. */
interface Slot {
  readonly tool: unknown;
  readonly rawArguments: unknown;
  swap?: JsonObject;
  error?: Error;
}

const clientCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
const taskRevision = "2026-07-28";

/** Keyed by the request's signal: the only object that is the same in the raw entry and in the callback. */
const slots = new WeakMap<AbortSignal, Slot>();
const attached = new WeakSet<object>();

/**
 * Puts longjobs in front of a server, before it connects: the capability, the three task methods, and the raw
 * `tools/call` entry. The returned function registers a task tool there.
 *
 * @throws Error when the server is connected or attached already, or when the SDK is not one that is known.
 */
export function attachV2(server: McpServerV2, context: SeamContext): (tool: TaskTool) => void {
  const mcp = server as unknown as V2Internals;
  assertKnownSdk(mcp);
  assertAttachable(mcp);
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"])
    mcp.server.assertCanSetRequestHandler(method);
  const handlers = forceToolHandlers(mcp);
  attached.add(mcp);
  mcp.server.registerCapabilities({ extensions: { [TASKS_EXTENSION_ID]: {} } });
  serveTaskMethods(mcp, context.methods);
  const taskTools = new Map<string, TaskTool>();
  standInFront(mcp, handlers, {
    taskTools,
    fallbackNames: new Set(context.fallbackTools.map(({ name }) => name)),
  });
  exemptOwnStates(mcp, taskTools);
  let hasFallbackTools = false;
  if (mcp.server._jsonSchemaValidator !== undefined) context.useValidator(mcp.server._jsonSchemaValidator);
  return (tool) => {
    registerTaskTool(mcp, tool, context);
    taskTools.set(tool.name, tool);
    if (tool.fallback !== "tools" || tool.taskSupport === "required" || hasFallbackTools) return;
    for (const fallbackTool of context.fallbackTools) registerFallbackTool(mcp, fallbackTool, context);
    hasFallbackTools = true;
  };
}

/** Everything that is reached for, before anything is changed. */
function assertKnownSdk(given: V2Internals): void {
  const mcp = given as Partial<V2Internals> | null | undefined;
  const inner = mcp?.server as Partial<V2Internals["server"]> | null | undefined;
  const present =
    hasMethods(mcp, ["isConnected", "registerTool"]) &&
    hasMethods(inner, ["assertCanSetRequestHandler", "getNegotiatedProtocolVersion"]) &&
    hasMethods(inner, ["registerCapabilities", "setRequestHandler"]) &&
    hasMethods(inner?._requestHandlers, ["get", "set", "has"]);
  if (!present) throw unknownSdk();
}

function hasMethods(object: object | null | undefined, names: readonly string[]): boolean {
  const methods = object as { readonly [name: string]: unknown } | null | undefined;
  return names.every((name) => typeof methods?.[name] === "function");
}

function assertAttachable(mcp: V2Internals): void {
  if (attached.has(mcp)) throw new Error("longjobs is attached to this server already.");
  if (mcp.isConnected()) throw new Error("Attach longjobs before the server connects.");
}

/** The SDK makes its tool handlers with the first tool; a tool that comes and goes makes them now. */
function forceToolHandlers(mcp: V2Internals): Map<string, RawHandler> {
  const handlers = mcp.server._requestHandlers;
  if (!handlers.has("tools/call"))
    mcp.registerTool("longjobs_probe", {}, async () => ({ content: [] })).remove();
  if (!handlers.has("tools/call")) throw unknownSdk();
  return handlers;
}

function unknownSdk(): Error {
  return new Error(
    "longjobs attaches to an McpServer of @modelcontextprotocol/server, from 2.3 on, or to an McpServer or Server of " +
      "@modelcontextprotocol/sdk, from 1.29 on, and this is none that it knows. Pass the McpServer itself; if it is one, use another version of the SDK, or a newer @longjobs/tasks.",
  );
}

function standInFront(
  mcp: V2Internals,
  handlers: Map<string, RawHandler>,
  view: Omit<ListView, "declaresTasks">,
): void {
  const inner = handlers.get("tools/call");
  const innerList = handlers.get("tools/list");
  if (inner === undefined || innerList === undefined) throw unknownSdk();
  handlers.set("tools/list", async (request, ctx) => {
    const result = (await innerList(request, ctx)) as { readonly tools: readonly ListedTool[] };
    if (view.taskTools.size === 0) return result;
    const { declaresTasks, modern } = toCaller(mcp, ctx);
    const tools = editToolList(result.tools, { ...view, declaresTasks });
    // The list depends on who asks: nobody may keep it for somebody else.
    return { ...result, tools, ...(modern ? { ttlMs: 0, cacheScope: "private" } : {}) };
  });
  handlers.set("tools/call", async (request, ctx) => {
    const slot: Slot = { tool: request.params?.name, rawArguments: request.params?.arguments };
    slots.set(ctx.mcpReq.signal, slot);
    const result = await inner(request, ctx);
    if (slot.error !== undefined) throw slot.error;
    return slot.swap ?? result;
  });
}

/** A server's own codec does not know the states of `prepare`, which are checked where they are opened. */
function exemptOwnStates({ server }: V2Internals, ownTools: ReadonlyMap<unknown, TaskTool>): void {
  const verify = server._requestStateVerify;
  if (verify === undefined) return;
  server._requestStateVerify = (state, ctx) =>
    ownTools.has(slots.get(ctx.mcpReq.signal)?.tool) ? undefined : verify.call(server, state, ctx);
}

function registerTaskTool(mcp: V2Internals, tool: TaskTool, context: SeamContext): void {
  const { title, description, inputSchema, outputSchema, annotations, _meta } = tool.config;
  const config = { title, description, inputSchema, outputSchema, annotations, _meta };
  const present = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
  const registered = mcp.registerTool(tool.name, present, async (...received) => {
    // With an input schema the SDK calls back with (arguments, ctx), without one with (ctx).
    const ctx = received.at(-1) as V2Context;
    const args = received.length === 2 ? received[0] : {};
    const slot = slots.get(ctx.mcpReq.signal);
    if (slot === undefined) throw new Error("The raw tools/call entry of longjobs was replaced.");
    try {
      const call = toToolCall(mcp, ctx, slot, registered.outputSchema);
      const served = await context.serve(tool, args, call);
      if (served.kind !== "task") return toCallbackResult(served);
      const { view } = served;
      slot.swap = call.declaresTasks ? toCreateTaskResult(view) : context.describeStarted(view.taskId);
      // An error result is the one kind that the SDK does not check against an outputSchema.
      return { content: [], isError: true };
    } catch (error) {
      slot.error = context.tellError(error);
      throw slot.error;
    }
  });
}

/** What the SDK's own handler gets to see. It checks and sends plain results and questions itself. */
function toCallbackResult(served: Exclude<Served, { kind: "task" }>): object {
  if (served.kind === "result") return served.result;
  const { inputRequests, requestState } = served;
  return { resultType: "input_required", inputRequests, requestState };
}

function registerFallbackTool(mcp: V2Internals, tool: FallbackTool, context: SeamContext): void {
  const serve = async (args: unknown, given: unknown): Promise<unknown> => {
    const ctx = given as V2Context;
    const { mcpReq } = ctx;
    const sendProgress = progressSender(mcpReq._meta?.progressToken, (notification) =>
      mcpReq.notify(notification),
    );
    try {
      return await tool.serve(args, {
        request: toCaller(mcp, ctx).request,
        signal: mcpReq.signal,
        ...(sendProgress === undefined ? {} : { sendProgress }),
      });
    } catch (error) {
      const slot = slots.get(mcpReq.signal);
      if (slot !== undefined) slot.error = context.tellError(error);
      throw error;
    }
  };
  try {
    mcp.registerTool(tool.name, tool.config, serve);
  } catch (cause) {
    throw new Error(
      `The tool ${tool.name} of longjobs cannot be registered; if the server has a tool of that name, ` +
        "choose another prefix: createTasks({ fallbackTools: { prefix } }).",
      { cause },
    );
  }
}

function toToolCall(
  mcp: V2Internals,
  ctx: V2Context,
  slot: Slot,
  outputSchema: StandardSchema | undefined,
): ToolCall {
  const { mcpReq } = ctx;
  const caller = toCaller(mcp, ctx);
  const capabilities = dropUndefined(mcpReq.envelope?.[clientCapabilitiesKey]) as JsonObject | undefined;
  const requestState = mcpReq.requestState();
  const sendProgress = progressSender(mcpReq._meta?.progressToken, (notification) =>
    mcpReq.notify(notification),
  );
  return {
    ...caller,
    client: {
      era: mcp.server.getNegotiatedProtocolVersion() ?? "2025-11-25",
      ...(capabilities === undefined ? {} : { capabilities }),
    },
    rawArguments: normalizeJson(dropUndefined(slot.rawArguments ?? {}), "arguments"),
    signal: mcpReq.signal,
    malformedKeys: mcpReq.droppedInputResponseKeys ?? [],
    ...(mcpReq.inputResponses === undefined ? {} : { inputResponses: mcpReq.inputResponses }),
    ...(typeof requestState === "string" ? { requestState } : {}),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(sendProgress === undefined ? {} : { sendProgress }),
  };
}

/** By this very request alone: what a client declared earlier does not count (spec "Capability Negotiation"). */
function toCaller(mcp: V2Internals, ctx: V2Context): TaskCaller {
  const { envelope } = ctx.mcpReq;
  const negotiated = mcp.server.getNegotiatedProtocolVersion();
  const modern = envelope !== undefined && negotiated !== undefined && negotiated >= taskRevision;
  const capabilities = envelope?.[clientCapabilitiesKey] as { extensions?: object } | undefined;
  const declaresTasks = modern && Object.hasOwn(capabilities?.extensions ?? {}, TASKS_EXTENSION_ID);
  const local = mcp.server.transport?.constructor.name === "InMemoryTransport" ? "memory" : "stdio";
  return { request: readRequestContext(ctx, local), declaresTasks, modern };
}

function serveTaskMethods(mcp: V2Internals, methods: TaskMethods): void {
  const schemas = { params: anyParams };
  mcp.server.setRequestHandler("tasks/get", schemas, ({ taskId }, ctx) =>
    methods.get(taskId, toCaller(mcp, ctx)),
  );
  mcp.server.setRequestHandler("tasks/cancel", schemas, ({ taskId }, ctx) =>
    methods.cancel(taskId, toCaller(mcp, ctx)),
  );
  mcp.server.setRequestHandler("tasks/update", schemas, ({ taskId }, ctx) =>
    methods.update(taskId, () => toTaskAnswers(ctx), toCaller(mcp, ctx)),
  );
}

/** The SDK has lifted the answers out of the params and set aside what is no response object. */
function toTaskAnswers({ mcpReq }: V2Context): TaskAnswers {
  if (mcpReq.inputResponses === undefined)
    throw jsonRpcError(rpcCode.invalidParams, "inputResponses is missing.");
  return { inputResponses: mcpReq.inputResponses, malformedKeys: mcpReq.droppedInputResponseKeys ?? [] };
}

/** The ids are checked behind the capability gate, so that a caller without the extension learns nothing. */
const anyParams: StandardSchema<TaskParams> = {
  "~standard": {
    version: 1,
    vendor: "longjobs",
    validate: (value): StandardResult<TaskParams> => ({ value: value ?? {} }),
  },
};
