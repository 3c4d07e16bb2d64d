import type { IncomingMessage } from "node:http";

import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";

import type { Tasks } from "../../src/index.ts";
import { frameText, legacyFrame } from "./frames.ts";
import { parseFrames, type HttpCallOptions } from "./http-door.ts";
import { StdioDoor } from "./stdio-door.ts";
import { newV1Server, serveV1Http } from "./v1-door.ts";
import { assertLegacyWire, type WireMessage } from "./wire.ts";

/** A session of raw frames with a server of SDK v1 over HTTP. */
export interface V1Session {
  send(
    method: string,
    params: object,
    options?: Pick<HttpCallOptions, "auth" | "signal">,
  ): Promise<{ readonly message: WireMessage; readonly notifications: readonly WireMessage[] }>;
}

const clientInfo = { name: "test", version: "1.0.0" };
const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };

/** A server of SDK v1 with real sessions; gives what opens one. Whoever has the id of one may send within it. */
export async function serveV1Sessions(tasks: Tasks): Promise<() => Promise<V1Session>> {
  const { url } = await serveV1Http(tasks, { road: "http", auth: authOf });
  const post = (
    frame: object,
    { auth, signal }: Pick<HttpCallOptions, "auth" | "signal">,
    more: object,
  ): Promise<Response> =>
    fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "test-auth": JSON.stringify(auth ?? null),
        ...more,
      },
      body: frameText(frame),
      signal: signal ?? null,
    });
  return async () => {
    const opened = await post(legacyFrame("initialize", hello), {}, {});
    await opened.text();
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    return {
      send: async (method, params, options = {}) => {
        const response = await post(legacyFrame(method, params), options, session);
        const frames = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
        const message = frames.find(({ method: own }) => own === undefined);
        if (message === undefined) throw new Error(`No answer: HTTP ${response.status}`);
        assertLegacyWire(method, message);
        return { message, notifications: frames.filter(({ method: own }) => own !== undefined) };
      },
    };
  };
}

/** What a verifier in front of the transport would have found out. */
function authOf({ headers }: IncomingMessage): object {
  const auth = JSON.parse(String(headers["test-auth"])) as object | null;
  return auth === null ? {} : { token: "secret-token", scopes: [], ...auth };
}

/** A server of SDK v1 at the other end of a pair of transports in this process. */
export async function connectV1InMemory(tasks: Tasks): Promise<StdioDoor> {
  const [client, far] = InMemoryTransport.createLinkedPair();
  const server = newV1Server(tasks);
  await server.connect(far);
  return StdioDoor.over(client, () => server.close());
}
