import type { IncomingMessage } from "node:http";

import type { Tasks } from "../../src/index.ts";
import { frameText, legacyFrame } from "../support/frames.ts";
import { HttpDoor, parseFrames, type HttpCallOptions } from "../support/http-door.ts";
import { serveV1Http } from "../support/v1-door.ts";
import type { WireMessage } from "../support/wire.ts";

/** Who a call comes from. */
export type Caller = Pick<HttpCallOptions, "auth">;

/** One session of some client with a server over HTTP: each call says who it comes from. */
export interface Session {
  send(method: string, params: object, caller: Caller): Promise<WireMessage>;
}

/** Opens a session to a server that has `tasks`. */
export type OpenSession = (tasks: Tasks) => Promise<() => Promise<Session>>;

/** A server of SDK v2, which has no sessions, and clients of 2026-07-28. */
export const v2Modern =
  (declare: boolean): OpenSession =>
  async (tasks) => {
    const door = new HttpDoor(tasks);
    return async () => ({
      send: async (method, params, caller) =>
        (await door.send(method, params, { declare, ...caller })).message,
    });
  };

/** The same server, and clients of 2025-11-25. */
export const v2Legacy: OpenSession = async (tasks) => {
  const door = new HttpDoor(tasks);
  return async () => ({
    send: async (method, params, caller) => (await door.sendLegacy(method, params, caller)).message,
  });
};

/** A server of SDK v1 with real sessions: whoever has the id of one may send within it. */
export const v1: OpenSession = async (tasks) => {
  const { url } = await serveV1Http(tasks, { road: "http", auth: authOf });
  return async () => {
    const post = async (frame: object, { auth }: Caller, more: object): Promise<Response> =>
      fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "test-auth": JSON.stringify(auth ?? null),
          ...more,
        },
        body: frameText(frame),
      });
    const clientInfo = { name: "test", version: "1.0.0" };
    const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    const opened = await post(legacyFrame("initialize", hello), {}, {});
    await opened.text();
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    return {
      send: async (method, params, caller) => {
        const response = await post(legacyFrame(method, params), caller, session);
        const frames = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
        const answer = frames.find(({ method: own }) => own === undefined);
        if (answer === undefined) throw new Error(`No answer: HTTP ${response.status}`);
        return answer;
      },
    };
  };
};

/** What a verifier in front of the transport would have found out. */
function authOf({ headers }: IncomingMessage): object {
  const auth = JSON.parse(String(headers["test-auth"])) as object | null;
  return auth === null ? {} : { token: "secret-token", scopes: [], ...auth };
}
