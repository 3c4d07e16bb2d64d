/*
 * How tasks are served through the TypeScript SDK v2 (`@modelcontextprotocol/server` from 2.3): both revisions of it.
 *
 * Tools are registered with the SDK's own `registerTool`, so that it checks arguments, lists them and serves
 * multi-round-trip input. Our callback runs the whole call. Two things cannot leave a callback, a task handle
 * and a JSON-RPC error: both wait in a slot, and the raw `tools/call` entry, which stands in front of the
 * SDK's own handler, puts them in the place of what the SDK made of them. The raw entry lives in a private map of
 * the SDK; where that map is missing, `attach` says so.
 */
import { normalizeJson, readRequestContext, TASKS_EXTENSION_ID } from "@longjobs/core";
import type { JsonObject } from "@longjobs/core";
import { dropUndefined } from "./drop-undefined.ts";
import { editToolList, showTaskSupport, type ListedTool, type ListView } from "./edit-tool-list.ts";
import type { FallbackTool } from "./fallback-tools.ts";
import { splitKeyArgument } from "./idempotency-key.ts";
import { jsonRpcError, rpcCode } from "./json-rpc-error.ts";
import { progressSender } from "./progress-sender.ts";
import { answersInJson } from "./sdk-v1.ts";
import { assertKnownSdk, forceToolHandlers, unknownSdk } from "./sdk-v2.ts";
import type { McpServerV2, RawHandler, TaskParams, V2Context, V2Internals } from "./sdk-v2.ts";
import type { SeamContext } from "./seam-context.ts";
import type { Served } from "./serve-tool-call.ts";
import type { StandardResult, StandardSchema } from "./standard-schema.ts";
import type { TaskAnswers, TaskCaller } from "./task-methods.ts";
import { toCreateTaskResult } from "./task-wire.ts";
import { longestTimeoutMs, toTaskWish } from "./tasks-2025/client-2025.ts";
import type { Caller2025, Client2025 } from "./tasks-2025/client-2025.ts";
import {
  notAsTask,
  readTaskParam,
  refusedText,
  tasksCapability2025,
  toCreateTaskResult2025,
} from "./tasks-2025/wire-2025.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** What one call carries past the SDK's own handler. */
interface Slot {
  readonly tool: unknown;
  /** The arguments as they came, without the one that is an idempotency key. */
  readonly rawArguments: unknown;
  readonly keyArgument: unknown;
  /** Present when a client of revision 2025-11-25 wants a task. */
  readonly wish: { readonly ttl?: number } | undefined;
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
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result"])
    mcp.server.assertCanSetRequestHandler(method);
  const handlers = forceToolHandlers(mcp);
  attached.add(mcp);
  mcp.server.registerCapabilities({ extensions: { [TASKS_EXTENSION_ID]: {} }, ...tasksCapability2025 });
  serveTaskMethods(mcp, context);
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
    if (tool.fallback !== "tools" || hasFallbackTools) return;
    for (const fallbackTool of context.fallbackTools) registerFallbackTool(mcp, fallbackTool, context);
    hasFallbackTools = true;
  };
}

function assertAttachable(mcp: V2Internals): void {
  if (attached.has(mcp)) throw new Error("longjobs is attached to this server already.");
  if (mcp.isConnected()) throw new Error("Attach longjobs before the server connects.");
}

function standInFront(
  mcp: V2Internals,
  handlers: Map<string, RawHandler>,
  view: Omit<ListView, "declaresTasks" | "modern">,
): void {
  const inner = handlers.get("tools/call");
  const innerList = handlers.get("tools/list");
  if (inner === undefined || innerList === undefined) throw unknownSdk();
  handlers.set("tools/list", async (request, ctx) => {
    const result = (await innerList(request, ctx)) as { readonly tools: readonly ListedTool[] };
    if (view.taskTools.size === 0) return result;
    const { declaresTasks, modern } = toCaller(mcp, ctx);
    const edited = editToolList(result.tools, { ...view, declaresTasks, modern });
    const tools = modern ? edited : showTaskSupport(edited, view.taskTools);
    // The list depends on who asks: nobody may keep it for somebody else.
    return { ...result, tools, ...(modern ? { ttlMs: 0, cacheScope: "private" } : {}) };
  });
  handlers.set("tools/call", async (request, ctx) => {
    const { name, arguments: given, task } = request.params ?? {};
    // Spec 2026-07-28: a `task` parameter of the earlier revision is ignored.
    const wish = toCaller(mcp, ctx).modern ? undefined : readTaskParam(task);
    if (wish !== undefined && !view.taskTools.has(name as string)) throw notAsTask(String(name));
    const { rest, keyArgument } = splitKeyArgument(view.taskTools.get(name as string), given);
    const slot: Slot = { tool: name, rawArguments: rest, keyArgument, wish };
    slots.set(ctx.mcpReq.signal, slot);
    const seen = rest === given ? request : { ...request, params: { ...request.params, arguments: rest } };
    const result = await inner(seen, ctx);
    if (slot.error !== undefined) throw slot.error;
    if (slot.swap !== undefined) return slot.swap;
    if (wish !== undefined) throw jsonRpcError(rpcCode.invalidParams, refusedText(result as JsonObject));
    return result;
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
  const registered = mcp.registerTool(tool.name, config, async (...received) => {
    // With an input schema the SDK calls back with (arguments, ctx), without one with (ctx).
    const ctx = received.at(-1) as V2Context;
    const args = received.length === 2 ? received[0] : {};
    const slot = slots.get(ctx.mcpReq.signal);
    if (slot === undefined) throw new Error("The raw tools/call entry of longjobs was replaced.");
    try {
      const call = toToolCall(mcp, ctx, slot, registered.outputSchema);
      const served = await context.serve(tool, args, call);
      if (served.kind !== "task") return toCallbackResult(served);
      slot.swap = toTaskAnswer(mcp, ctx, { tool, call, served }, context);
      // An error result is the one kind that the SDK does not check against an outputSchema.
      return { content: [], isError: true };
    } catch (error) {
      slot.error = context.tellError(error);
      throw slot.error;
    }
  });
}

interface ServedTask {
  readonly tool: TaskTool;
  readonly call: ToolCall;
  readonly served: Extract<Served, { kind: "task" }>;
}

function toTaskAnswer(
  mcp: V2Internals,
  ctx: V2Context,
  { tool, call, served }: ServedTask,
  context: SeamContext,
): JsonObject {
  const { view, found } = served;
  if (call.declaresTasks) return toCreateTaskResult(view);
  if (call.taskWish === undefined) return context.describeStarted(served);
  const { notify } = toClient2025(mcp, ctx);
  // One of an earlier call has its connection, or has ended.
  if (notify !== undefined && found === undefined) context.methods2025.statuses.watch(view.taskId, notify);
  return toCreateTaskResult2025(view, context.describeAccepted(tool, served));
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
    keyArgument: slot.keyArgument,
    signal: mcpReq.signal,
    malformedKeys: mcpReq.droppedInputResponseKeys ?? [],
    ...(slot.wish === undefined
      ? {}
      : { taskWish: toTaskWish(slot.wish, toClient2025(mcp, ctx), mcpReq._meta?.progressToken) }),
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

/** Both revisions have `tasks/get` and `tasks/cancel`, and each has one more of its own. */
function serveTaskMethods(mcp: V2Internals, { methods, methods2025 }: SeamContext): void {
  const schemas = { params: anyParams };
  for (const method of ["get", "cancel"] as const) {
    mcp.server.setRequestHandler(`tasks/${method}`, schemas, ({ taskId }, ctx) => {
      const caller = toCaller(mcp, ctx);
      return caller.modern
        ? methods[method](taskId, caller)
        : methods2025[method](taskId, toCaller2025(mcp, ctx, caller));
    });
  }
  mcp.server.setRequestHandler("tasks/update", schemas, ({ taskId }, ctx) =>
    methods.update(taskId, () => toTaskAnswers(ctx), toCaller(mcp, ctx)),
  );
  mcp.server.setRequestHandler("tasks/result", schemas, async ({ taskId }, ctx) => {
    const caller = toCaller(mcp, ctx);
    if (!caller.modern) return methods2025.result(taskId, toCaller2025(mcp, ctx, caller));
    throw jsonRpcError(rpcCode.methodNotFound, "This method belongs to protocol revision 2025-11-25.");
  });
}

function toCaller2025(mcp: V2Internals, ctx: V2Context, { request }: TaskCaller): Caller2025 {
  return {
    request,
    signal: ctx.mcpReq.signal,
    client: toClient2025(mcp, ctx),
    connection: mcp.server,
  };
}

/** Over HTTP this leg is stateless: such a server does not know its clients, and their answers go to another instance. */
function toClient2025({ server }: V2Internals, { mcpReq }: V2Context): Client2025 {
  const capabilities = server.getClientCapabilities();
  return {
    askable: capabilities === undefined || answersInJson(server) ? {} : capabilities,
    ask: (question, signal) => mcpReq.send(question, { timeout: longestTimeoutMs, signal }),
    ...(capabilities === undefined
      ? {}
      : { notify: (notification: object) => server.notification(notification) }),
  };
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
