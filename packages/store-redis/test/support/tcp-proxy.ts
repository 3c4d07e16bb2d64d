import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** What a {@link TcpProxy} does with what passes through it. */
export type ProxyMode =
  /** Passes everything on. */
  | "open"
  /** Breaks every connection, and every new one. */
  | "cut"
  /** Passes requests on and keeps the replies: the half-open connection. */
  | "deaf"
  /** Passes nothing on, in either direction, and breaks nothing. */
  | "silent";

/** A way to a server that a test can disturb. */
export interface TcpProxy {
  readonly port: number;
  mode: ProxyMode;
  /** Connections taken since the start. */
  readonly connections: number;
  /** How often a request came after a reply had gone out: round trips, when replies are under way for a while. */
  readonly turns: number;
  /** Pieces of replies that were kept since the start. */
  readonly kept: number;
  /** Once a request with this text has passed the proxy is deaf. */
  deafAfter: string | undefined;
  /** Breaks the connections there are. */
  reset(): void;
  close(): Promise<void>;
}

/** @param delayMs - How long replies are under way. */
export async function startTcpProxy(targetPort: number, delayMs = 0): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let mode: ProxyMode = "open";
  let connections = 0;
  let kept = 0;
  let turns = 0;
  let hasReplied = true;
  let deafAfter: string | undefined;
  const reset = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((near) => {
    connections += 1;
    if (mode === "cut") return void near.destroy();
    const far = connect(targetPort, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      // A broken connection breaks its other half; what broke it is what the test wants to see.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.on("data", (bytes) => {
      if (hasReplied) turns += 1;
      hasReplied = false;
      if (deafAfter !== undefined && bytes.includes(deafAfter)) mode = "deaf";
      if (mode !== "silent") far.write(bytes);
    });
    const reply = (bytes: Buffer): void => {
      hasReplied = true;
      near.write(bytes);
    };
    far.on("data", (bytes) => {
      if (mode === "silent" || mode === "deaf") kept += 1;
      else if (delayMs === 0) reply(bytes);
      else setTimeout(reply, delayMs, bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get mode() {
      return mode;
    },
    set mode(next) {
      mode = next;
      if (next === "cut") reset();
    },
    get turns() {
      return turns;
    },
    get kept() {
      return kept;
    },
    get deafAfter() {
      return deafAfter;
    },
    set deafAfter(text) {
      deafAfter = text;
    },
    get connections() {
      return connections;
    },
    reset,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      reset();
      await closed;
    },
  };
}
