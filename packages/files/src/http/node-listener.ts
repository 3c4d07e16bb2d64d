import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { reportBackgroundError, type AuthInfo } from "@longjobs/core";
import type { FetchOptions } from "./fetch-options.ts";

/** Whatever serves web requests as `Files` does. */
export interface WebEndpoint {
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
}

/** How long the rest of a refused body is read before the connection is closed, in milliseconds. */
const drainMs = 2_000;

/**
 * Serves an endpoint through `node:http`, or through anything that calls a handler with its requests and responses, such as
 * Express. `request.auth` is taken for the caller's auth info, as the middleware of the SDKs sets it.
 */
export function toNodeListener(
  endpoint: WebEndpoint,
): (request: IncomingMessage & { readonly auth?: AuthInfo | undefined }, response: ServerResponse) => void {
  return (request, response) => {
    serve(endpoint, request, response).catch((error: unknown) => {
      reportBackgroundError(error);
      response.destroy();
    });
  };
}

async function serve(
  endpoint: WebEndpoint,
  request: IncomingMessage & { readonly auth?: AuthInfo | undefined; readonly originalUrl?: string },
  response: ServerResponse,
): Promise<void> {
  const answer = await endpoint.fetch(toWebRequest(request), { authInfo: request.auth });
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

function toWebRequest(request: IncomingMessage & { readonly originalUrl?: string }): Request {
  const { method = "GET", headers } = request;
  // Express shortens `url` where a handler is mounted. The host says nothing that is used.
  const url = new URL(request.originalUrl ?? request.url ?? "/", "http://transfer.invalid");
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
  const reader = body.getReader();
  const gone = (): void => void reader.cancel().catch(() => undefined);
  response.once("close", gone);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (response.write(next.value)) continue;
      await drained(response);
      if (response.destroyed) return;
    }
    response.end();
  } catch {
    // The source said why to whoever asks next; here nothing can be said any more.
    response.destroy();
  } finally {
    response.off("close", gone);
  }
}

async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
  });
}
