import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** What a network does between a store and its server: it can go silent without a word. */
export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #silent = new Set<Socket>();
  /** Connections that were opened so far. */
  opened = 0;

  private constructor(target: URL) {
    this.#server = createServer((near) => {
      this.opened += 1;
      const far = connect(Number(target.port || 5432), target.hostname);
      this.#join(near, far);
      this.#join(far, near);
    });
  }

  static async start(url: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(url));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** The address of the server, by way of the proxy. */
  through(url: string): string {
    const via = new URL(url);
    via.hostname = "127.0.0.1";
    via.port = String((this.#server.address() as AddressInfo).port);
    return via.href;
  }

  /** From now on nothing passes on the connections that are open: no byte, no end. New ones work. */
  silence(): void {
    for (const socket of this.#sockets) this.#silent.add(socket);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on("data", (bytes) => {
      if (!this.#silent.has(from)) to.write(bytes);
    });
    from.on("close", () => {
      this.#sockets.delete(from);
      if (!this.#silent.has(from)) to.destroy();
    });
    // The close that follows is what counts.
    from.on("error", () => undefined);
  }
}
