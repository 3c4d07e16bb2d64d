import type { Tasks } from "../../src/index.ts";
import { HttpDoor, type HttpCallOptions } from "../support/http-door.ts";
import { serveV1Sessions } from "../support/v1-session.ts";
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

/** The same server, which also tells of changes: the first message of a subscription is its answer, and then it is closed. */
export const v2Push: OpenSession = async (tasks) => {
  const door = new HttpDoor(tasks, { push: true });
  return async () => ({
    send: async (method, params, caller) => {
      const { notifications } = params as { readonly notifications?: unknown };
      if (notifications === undefined) return (await door.send(method, params, caller)).message;
      const stream = await door.listen(notifications, caller);
      const first = await stream.next();
      await stream.close();
      return first ?? { jsonrpc: "2.0" };
    },
  });
};

/** The same server, and clients of 2025-11-25. */
export const v2Legacy: OpenSession = async (tasks) => {
  const door = new HttpDoor(tasks);
  return async () => ({
    send: async (method, params, caller) => (await door.sendLegacy(method, params, caller)).message,
  });
};

/** A server of SDK v1 with real sessions. */
export const v1: OpenSession = async (tasks) => {
  const open = await serveV1Sessions(tasks);
  return async () => {
    const session = await open();
    return {
      send: async (method, params, caller) => (await session.send(method, params, caller)).message,
    };
  };
};
