import { createServer, type AddressInfo, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A server that says what the test tells it to. */
export interface StubServer {
  readonly port: number;
  /** The names of the commands that came, in order. */
  readonly commands: readonly string[];
  /** Connections taken since the start. */
  readonly connections: number;
}

/** Replies as they are written on the wire, such as `"-LOADING Redis is loading\r\n"`. */
export type Reply = (name: string, args: readonly string[]) => string | undefined;

/** The reply that breaks the connection. */
export const BREAK = "break";

/** Speaks just enough of the protocol for a client to connect; all else is the test's. */
export async function stubServer(reply: Reply): Promise<StubServer> {
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined);
    let unread = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      unread = Buffer.concat([unread, bytes]);
      for (let command = readCommand(unread); command !== undefined; command = readCommand(unread)) {
        unread = unread.subarray(command.length);
        const [name = "", ...args] = command.words;
        commands.push(name.toLowerCase());
        const said = reply(name.toLowerCase(), args) ?? greeting(name.toLowerCase());
        if (said === BREAK) return void socket.destroy();
        socket.write(said);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    commands,
    get connections() {
      return connections;
    },
  };
}

/** Text as a reply. */
export function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

function greeting(name: string): string {
  if (name === "hello") return "-NOPROTO no such protocol\r\n";
  if (name === "info") return bulk("loading:0\r\nmaxmemory_policy:noeviction\r\n");
  return "+OK\r\n";
}

/** The first whole command: a list of texts, as clients send them. */
function readCommand(bytes: Buffer): { readonly words: string[]; readonly length: number } | undefined {
  let at = 0;
  const line = (): string | undefined => {
    const end = bytes.indexOf("\r\n", at);
    if (end < 0) return undefined;
    const text = bytes.toString("utf8", at, end);
    at = end + 2;
    return text;
  };
  const count = line();
  if (count === undefined) return undefined;
  const words: string[] = [];
  for (let index = 0; index < Number(count.slice(1)); index += 1) {
    const length = Number(line()?.slice(1) ?? Number.NaN);
    if (Number.isNaN(length) || bytes.length < at + length + 2) return undefined;
    words.push(bytes.toString("utf8", at, at + length));
    at += length + 2;
  }
  return { words, length: at };
}
