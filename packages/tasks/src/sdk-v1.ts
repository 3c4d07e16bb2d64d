/*
 * The TypeScript SDK v1 (`@modelcontextprotocol/sdk` from 1.29), as far as it is used here, and how it is told from others. It
 * is never imported, only met by shape.
 */
import type { JsonObject } from "@longjobs/core";
import type { JsonSchemaValidator } from "./validate-input.ts";

/** A `McpServer` or a low-level `Server` of SDK v1, as a type: the parts that others do not have are not public. */
export type ServerV1 =
  | { readonly server: object; registerTool(...args: never[]): unknown }
  | {
      getClientCapabilities(): object | undefined;
      registerCapabilities(...args: never[]): unknown;
      /** SDK v2 has it, and there the `McpServer` is needed. */
      readonly getNegotiatedProtocolVersion?: undefined;
    };

/** The low-level `Server`, with the private parts that are reached for. */
export interface V1Server {
  _requestHandlers: Map<string, RawHandler>;
  readonly _jsonSchemaValidator?: JsonSchemaValidator;
  readonly transport?: V1Transport;
  assertCanSetRequestHandler(method: string): void;
  getClientCapabilities(): JsonObject | undefined;
  notification(notification: object): Promise<void>;
  registerCapabilities(capabilities: object): void;
  sendToolListChanged(): Promise<void>;
}

/** The parts of a transport that say whether a question can come back. */
interface V1Transport {
  readonly constructor: { readonly name: string };
  readonly _enableJsonResponse?: boolean;
  readonly _webStandardTransport?: { readonly _enableJsonResponse?: boolean };
}

/** A tool of the server's own, kept by `McpServer` under its name. */
interface V1RegisteredTool {
  readonly handler?: unknown;
}

/** What stands behind one method. */
export type RawHandler = (request: RawRequest, extra: V1Extra) => unknown;

/** A request as it came, not checked yet. */
export interface RawRequest {
  readonly params?: { readonly [param: string]: unknown };
}

/** What the SDK hands to a handler. */
export interface V1Extra {
  readonly signal: AbortSignal;
  readonly _meta?: { readonly progressToken?: string | number };
  readonly requestInfo?: { readonly headers?: { readonly [name: string]: unknown } };
  sendNotification(notification: object): Promise<void>;
  sendRequest(
    request: object,
    resultSchema: { safeParse(value: unknown): { success: true; data: unknown } },
    options: { readonly timeout: number; readonly signal: AbortSignal },
  ): Promise<unknown>;
}

/** A server of SDK v1, opened. */
export interface OpenedV1 {
  readonly server: V1Server;
  /** The tools that an `McpServer` has of its own. */
  readonly toolsOf: () => { readonly [name: string]: V1RegisteredTool };
}

/** The server behind what was passed to `attach`, or `undefined` when it is none of this SDK. */
export function openV1(given: unknown): OpenedV1 | undefined {
  const outer = given as { readonly server?: unknown; readonly _registeredTools?: object } | null | undefined;
  const inner = (outer?.server ?? outer) as
    | (V1Server & { readonly [name: string]: unknown })
    | null
    | undefined;
  if (!isFunction(inner?.["assertTaskHandlerCapability"])) return undefined;
  const methods = [
    "assertCanSetRequestHandler",
    "getClientCapabilities",
    "notification",
    "registerCapabilities",
    "sendToolListChanged",
  ];
  if (inner === undefined || inner === null || !methods.every((name) => isFunction(inner[name])))
    return undefined;
  if (!(inner._requestHandlers instanceof Map) || !inner._requestHandlers.has("initialize")) return undefined;
  return {
    server: inner,
    toolsOf: () => (outer?._registeredTools ?? {}) as { readonly [name: string]: V1RegisteredTool },
  };
}

/** In plain JSON there is no stream on which a question could reach the client. */
export function answersInJson(server: { readonly transport?: Partial<V1Transport> }): boolean {
  const transport = server.transport;
  return (transport?._webStandardTransport ?? transport)?._enableJsonResponse === true;
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

/** Stands in front of what a server has, or will have, for a method. */
type Front = (inner: RawHandler | undefined, request: RawRequest, extra: V1Extra) => unknown;

/**
 * The handlers of a server, with ours in front of some. A handler that the server sets later lands behind the front, and
 * the SDK's question whether there is one is answered as if there were no front.
 */
export class FrontedHandlers extends Map<string, RawHandler> {
  readonly #inner = new Map<string, RawHandler>();
  readonly #fronts: ReadonlyMap<string, RawHandler>;

  constructor(handlers: ReadonlyMap<string, RawHandler>, fronts: { readonly [method: string]: Front }) {
    super();
    this.#fronts = new Map(
      Object.entries(fronts).map(([method, front]) => [
        method,
        (request, extra) => front(this.#inner.get(method), request, extra),
      ]),
    );
    for (const [method, handler] of handlers) this.set(method, handler);
  }

  override get(method: string): RawHandler | undefined {
    return this.#fronts.get(method) ?? super.get(method);
  }

  override has(method: string): boolean {
    return this.#fronts.has(method) ? this.#inner.has(method) : super.has(method);
  }

  override set(method: string, handler: RawHandler): this {
    if (!this.#fronts.has(method)) return super.set(method, handler);
    this.#inner.set(method, handler);
    return this;
  }

  override delete(method: string): boolean {
    return this.#fronts.has(method) ? this.#inner.delete(method) : super.delete(method);
  }
}
