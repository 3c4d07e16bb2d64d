import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { reportBackgroundError, type AuthInfo } from "@longjobs/core";
import type { FetchOptions } from "./fetch-options.ts";
import { errorResponse, notFound } from "./http-error.ts";

/** Whatever serves web requests as `Files` does. */
export interface WebEndpoint {
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
}

/** A request of `node:http`, as far as callers need to know it. */
export interface NodeRequestLike {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  /** The caller's auth info, as the middleware of the SDKs sets it. */
  readonly auth?: AuthInfo | undefined;
}

/** A response of `node:http`. */
export interface NodeResponseLike {
  writeHead(statusCode: number, headers: Record<string, string>): unknown;
  end(): unknown;
}

/** What is behind them: no type of Node is in the declarations of this package. */
type NodeRequest = IncomingMessage & Pick<NodeRequestLike, "auth"> & { readonly originalUrl?: string };

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/** How long the rest of a refused body is read before the connection is closed, in milliseconds. */
const drainMs = 2_000;

/**
 * Serves an endpoint through `node:http`, or through anything that calls a handler with its requests and responses, such as
 * Express.
 */
export function toNodeListener(
  endpoint: WebEndpoint,
): (request: NodeRequestLike, response: NodeResponseLike) => void {
  return (request, response) => {
    const nodeResponse = response as ServerResponse;
    serve(endpoint, request as NodeRequest, nodeResponse).catch((error: unknown) => {
      reportBackgroundError(error);
      nodeResponse.destroy();
    });
  };
}

async function serve(endpoint: WebEndpoint, request: NodeRequest, response: ServerResponse): Promise<void> {
  const webRequest = toWebRequest(request);
  const answer =
    webRequest === undefined
      ? errorResponse(notFound())
      : await endpoint.fetch(webRequest, { authInfo: request.auth });
  // A client that is still sending must be able to read why nobody listens: the rest is read and thrown away.
  const isCutShort = !request.complete && hasBody(request);
  if (isCutShort) {
    response.setHeader("connection", "close");
    discardRest(request, response);
  }
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) response.end();
  else await sendBody(answer.body, response);
}

/** `undefined` for what no web request can be: a method such as TRACE, a path that is none. */
function toWebRequest(request: NodeRequest): Request | undefined {
  const { method = "GET", headers } = request;
  // Express shortens `url` where a handler is mounted. The host says nothing that is used.
  const url = `http://transfer.invalid${request.originalUrl ?? request.url ?? "/"}`;
  if (!URL.canParse(url) || !methods.has(method)) return undefined;
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value] as [string, string]],
  );
  const body = hasBody(request) ? { body: Readable.toWeb(request), duplex: "half" } : {};
  return new Request(url, { method, headers: entries, ...body } as RequestInit);
}

function hasBody({ method, headers }: IncomingMessage): boolean {
  if (method === "GET" || method === "HEAD") return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function discardRest(request: IncomingMessage, response: ServerResponse): void {
  request.removeAllListeners("data");
  request.resume();
  response.once("finish", () => {
    setTimeout(() => request.destroy(), drainMs).unref();
  });
}

/** With the pace of the client. A body that breaks, breaks the connection: a client must not take a part for the whole. */
async function sendBody(body: ReadableStream<Uint8Array>, response: ServerResponse): Promise<void> {
  const reader = openReader(body);
  const gone = (): void => void reader.cancel().catch(() => undefined);
  response.once("close", gone);
  try {
    const sending: Promise<ArrayBuffer>[] = [];
    for (;;) {
      // Two pieces are on their way, and their memory is used again: what is thrown away is collected late.
      const memory = sending.length < 2 ? undefined : await sending.shift();
      const piece = await reader.read(memory);
      if (piece === undefined || response.destroyed) break;
      sending.push(send(piece, response));
    }
    await Promise.all(sending);
    response.end();
  } catch {
    // The source said why to whoever asks next; here nothing can be said any more.
    response.destroy();
  } finally {
    response.off("close", gone);
  }
}

/** What a piece of a body may take. */
const pieceBytes = 128 * 1024;

interface BodyReader {
  /** The next piece, in this memory if the body can use it; `undefined` at the end. */
  read(memory: ArrayBuffer | undefined): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

function openReader(body: ReadableStream<Uint8Array>): BodyReader {
  try {
    const reader = body.getReader({ mode: "byob" });
    return {
      async read(memory = new ArrayBuffer(pieceBytes)) {
        const { done, value } = await reader.read(new Uint8Array(memory));
        return done ? undefined : value;
      },
      cancel: () => reader.cancel(),
    };
  } catch {
    // A body that brings its own memory.
    const reader = body.getReader();
    return { read: async () => (await reader.read()).value, cancel: () => reader.cancel() };
  }
}

/** Resolves to the memory of a piece once nobody needs it any more: it was sent, or the connection is gone. */
function send(piece: Uint8Array, response: ServerResponse): Promise<ArrayBuffer> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("close", done);
      resolve(piece.buffer as ArrayBuffer);
    };
    response.once("close", done);
    response.write(piece, done);
  });
}
