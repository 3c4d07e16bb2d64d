/*
 * The TypeScript SDK v2 (`@modelcontextprotocol/server` from 2.3), as far as it is used here. It is never imported, only met by
 * shape.
 */
import type { InputRequest, InputResponse, JsonObject } from "@longjobs/core";
import type { StandardSchema } from "./standard-schema.ts";
import type { JsonSchemaValidator } from "./validate-input.ts";

/** A `McpServer` of SDK v2, as far as it is used here. */
export interface McpServerV2 {
  readonly server: object;
  registerTool(...args: never[]): unknown;
}

/** The private and generic parts of the SDK that are reached for here. */
export interface V2Internals {
  readonly server: {
    readonly _requestHandlers: Map<string, RawHandler>;
    readonly _jsonSchemaValidator?: JsonSchemaValidator;
    _requestStateVerify?: VerifyRequestState | undefined;
    readonly transport?: { readonly constructor: { readonly name: string } };
    assertCanSetRequestHandler(method: string): void;
    getClientCapabilities(): JsonObject | undefined;
    getNegotiatedProtocolVersion(): string | undefined;
    notification(notification: object): Promise<void>;
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

export interface RegisteredTool {
  readonly outputSchema?: StandardSchema;
  remove(): void;
}

/** A server's own check of `requestState`, its `requestState.verify` option. */
export type VerifyRequestState = (state: string, ctx: V2Context) => unknown;

export type RawHandler = (request: RawRequest, ctx: V2Context) => Promise<unknown>;

export interface RawRequest {
  readonly params?: { readonly name?: unknown; readonly arguments?: unknown; readonly task?: unknown };
}

export interface V2Context {
  readonly mcpReq: {
    readonly _meta?: { readonly progressToken?: string | number };
    readonly envelope?: { readonly [key: string]: unknown };
    readonly inputResponses?: { readonly [key: string]: InputResponse };
    readonly droppedInputResponseKeys?: readonly string[];
    readonly signal: AbortSignal;
    requestState(): unknown;
    notify(notification: object): Promise<void>;
    send(
      request: InputRequest,
      options: { readonly timeout: number; readonly signal: AbortSignal },
    ): Promise<unknown>;
  };
}

export interface TaskParams {
  readonly taskId?: unknown;
}

const serverMethods = [
  "assertCanSetRequestHandler",
  "getClientCapabilities",
  "getNegotiatedProtocolVersion",
  "notification",
  "registerCapabilities",
  "setRequestHandler",
];

/** Everything that is reached for, before anything is changed. */
export function assertKnownSdk(given: V2Internals): void {
  const mcp = given as Partial<V2Internals> | null | undefined;
  const inner = mcp?.server as Partial<V2Internals["server"]> | null | undefined;
  const present =
    hasMethods(mcp, ["isConnected", "registerTool"]) &&
    hasMethods(inner, serverMethods) &&
    hasMethods(inner?._requestHandlers, ["get", "set", "has"]);
  if (!present) throw unknownSdk();
}

function hasMethods(object: object | null | undefined, names: readonly string[]): boolean {
  const methods = object as { readonly [name: string]: unknown } | null | undefined;
  return names.every((name) => typeof methods?.[name] === "function");
}

/** The SDK makes its tool handlers with the first tool; a tool that comes and goes makes them now. */
export function forceToolHandlers(mcp: V2Internals): Map<string, RawHandler> {
  const handlers = mcp.server._requestHandlers;
  if (!handlers.has("tools/call"))
    mcp.registerTool("longjobs_probe", {}, async () => ({ content: [] })).remove();
  if (!handlers.has("tools/call")) throw unknownSdk();
  return handlers;
}

export function unknownSdk(): Error {
  return new Error(
    "longjobs attaches to an McpServer of @modelcontextprotocol/server, from 2.3 on, or to an McpServer or Server of " +
      "@modelcontextprotocol/sdk, from 1.29 on, and this is none that it knows. " +
      "Pass the server itself, before it is wrapped; if it is one, use another version of the SDK, or a newer @longjobs/tasks.",
  );
}
