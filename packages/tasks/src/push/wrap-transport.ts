import { ListenConnection, type MessageHandler, type MessageTransport } from "./listen-connection.ts";
import type { TaskPush } from "./task-push.ts";

/** A transport of one connection, such as `StdioServerTransport` of `@modelcontextprotocol/server/stdio`. */
export interface WrappableTransport {
  start(): Promise<void>;
  send(message: never, options?: never): Promise<void>;
  close(): Promise<void>;
}

/** The transport, with push. @throws TypeError for anything else; Error for one that is in use */
export function wrapTransport<Transport extends WrappableTransport>(
  transport: Transport,
  push: TaskPush,
): Transport {
  assertTransport(transport);
  const inner = transport as unknown as MessageTransport;
  if (inner.onmessage !== undefined) throw new Error("Wrap a transport before a server is connected to it.");
  const connection = new ListenConnection(inner, push);
  const send: MessageTransport["send"] = (message, options) => connection.send(message, options);
  let onClose = inner.onclose;
  Reflect.set(inner, "onclose", () => {
    connection.closed();
    onClose?.();
  });
  return new Proxy(transport, {
    get: (target, key) => {
      if (key === "onclose") return onClose;
      if (key === "onmessage") return connection.onMessage;
      return key === "send" ? send : bound(target, key);
    },
    set: (target, key, value) => {
      if (key === "onclose") onClose = value as () => void;
      else if (key === "onmessage") listenTo(inner, connection, value as MessageHandler | undefined);
      else return Reflect.set(target, key, value, target);
      return true;
    },
  });
}

/** Only from now on: a transport keeps what comes before somebody listens. */
function listenTo(
  inner: MessageTransport,
  connection: ListenConnection,
  handler: MessageHandler | undefined,
): void {
  const receive: MessageHandler = (message, extra) => connection.receive(message, extra);
  connection.onMessage = handler;
  Reflect.set(inner, "onmessage", handler && receive);
}

/** Methods keep their own `this`: transports have private fields. */
function bound(target: object, key: PropertyKey): unknown {
  const value: unknown = Reflect.get(target, key, target);
  if (typeof value !== "function" || Object.hasOwn(target, key) || key === "constructor") return value;
  return (value as (...args: unknown[]) => unknown).bind(target);
}

function assertTransport(transport: unknown): void {
  const methods = (transport ?? {}) as { readonly [name: string]: unknown };
  const isTransport = ["start", "send", "close"].every((name) => typeof methods[name] === "function");
  // Such a transport answers many connections, and its messages do not say which.
  if (isTransport && typeof methods["handleRequest"] !== "function") return;
  throw new TypeError(
    "wrapTransport takes the transport of one connection, such as StdioServerTransport of @modelcontextprotocol/server/stdio, " +
      "for serveStdio(factory, { transport }). Over HTTP wrap the handler: tasks.wrapHandler(createMcpHandler(factory)).",
  );
}
