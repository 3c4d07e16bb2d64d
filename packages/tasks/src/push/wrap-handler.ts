/*
 * Push over HTTP. The SDK's own listen route goes first: it checks the request, asks the server's factory, and acknowledges what
 * it serves itself. Its stream is passed on event by event, with our ids in the acknowledgement and our
 * notifications between its events. Where it serves nothing of the request it ends its stream at once, and ours goes on alone.
 */
import { readRequestContext, type AuthInfo } from "@longjobs/core";
import { rpcCode } from "../json-rpc-error.ts";
import { EventReader, readEvent } from "./event-stream.ts";
import { isAcknowledgement, refusedListen } from "./listen-messages.ts";
import { mayListen, readTaskListen, type TaskListen } from "./listen-request.ts";
import type { TaskPush } from "./task-push.ts";
import { weaveEvents } from "./weave-events.ts";

/** What `createMcpHandler` of `@modelcontextprotocol/server` returns, as far as it is used here. */
export interface WrappableHandler {
  readonly fetch: (request: Request, options?: never) => Promise<Response>;
  readonly close: () => Promise<void>;
}

interface FetchOptions {
  readonly authInfo?: AuthInfo;
  readonly parsedBody?: unknown;
}

type Fetch = (request: Request, options?: FetchOptions) => Promise<Response>;

/** The handler, with push. @throws TypeError for anything else */
export function wrapHandler<Handler extends WrappableHandler>(handler: Handler, push: TaskPush): Handler {
  assertHandler(handler);
  const inner: Fetch = (request, options) => handler.fetch(request, options as never);
  const fetch: Fetch = async (request, options) => {
    const listen = mayListen(request) ? await readBody(request, options) : undefined;
    if (listen === undefined) return inner(request, options);
    const response = await inner(request, { ...options, parsedBody: listen.rest });
    if (!isEventStream(response)) return response;
    return serveListen(listen, { request, response, options, push, entry: handler });
  };
  const close = async (): Promise<void> => {
    await push.close(handler);
    await handler.close();
  };
  return { ...handler, fetch, close };
}

function assertHandler(handler: unknown): asserts handler is WrappableHandler {
  const { close, fetch } = (handler ?? {}) as { readonly close?: unknown; readonly fetch?: unknown };
  if (typeof fetch === "function" && typeof close === "function") return;
  throw new TypeError(
    "wrapHandler takes what createMcpHandler of @modelcontextprotocol/server returns. Transports, and all of " +
      "@modelcontextprotocol/sdk, do not serve subscriptions/listen: there clients poll.",
  );
}

/** Of a copy: a request that names no tasks is the SDK's, body and all. */
async function readBody(
  request: Request,
  options: FetchOptions | undefined,
): Promise<TaskListen | undefined> {
  if (options?.parsedBody !== undefined) return readTaskListen(options.parsedBody);
  try {
    return readTaskListen(await request.clone().json());
  } catch {
    // No JSON, or no body left to read: for the SDK to refuse.
    return undefined;
  }
}

function isEventStream(
  response: Response,
): response is Response & { readonly body: ReadableStream<Uint8Array> } {
  return (
    response.body !== null && (response.headers.get("content-type") ?? "").startsWith("text/event-stream")
  );
}

interface ListenExchange {
  readonly request: Request;
  readonly response: Response & { readonly body: ReadableStream<Uint8Array> };
  readonly options: FetchOptions | undefined;
  readonly push: TaskPush;
  readonly entry: object;
}

async function serveListen(listen: TaskListen, exchange: ListenExchange): Promise<Response> {
  const { entry, options, push, request, response } = exchange;
  const events = new EventReader(response.body);
  try {
    const acknowledgement = readEvent((await events.next()) ?? "");
    if (!isAcknowledgement(acknowledgement, listen.id))
      throw new Error("The SDK did not acknowledge a subscription; use a newer @longjobs/tasks with it.");
    const { authInfo } = options ?? {};
    const http = { req: request, ...(authInfo === undefined ? {} : { authInfo }) };
    const context = readRequestContext({ mcpReq: { _meta: listen.meta }, http });
    const subscription = await push.open(listen, { request: context, entry });
    const { signal } = request;
    const weft = { listen, acknowledgement, subscription, push, signal, authInfo: authInfo ?? {} };
    const body = weaveEvents(events, weft);
    return new Response(body, { status: response.status, headers: response.headers });
  } catch (error) {
    await events.cancel();
    return toRefusal(listen, push.tellError(error));
  }
}

/** As the SDK answers errors of this kind: -32021 with 400 (the spec wants it), others with 200. */
function toRefusal({ id }: TaskListen, told: Error): Response {
  const status = (told as { readonly code?: unknown }).code === rpcCode.missingClientCapability ? 400 : 200;
  return Response.json(refusedListen(id, told), { status });
}
