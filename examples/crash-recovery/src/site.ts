import { createServer, type Server } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

/** A site of small pages on loopback, which counts how often each is fetched. */
export class Site {
  readonly fetches = new Map<number, number>();
  readonly #server: Server;
  #url = "";

  constructor() {
    this.#server = createServer((request, response) => {
      const page = Number(/^\/page\/(\d+)$/.exec(request.url ?? "")?.[1]);
      this.fetches.set(page, (this.fetches.get(page) ?? 0) + 1);
      void delay(200).then(() => response.end(`Page ${page} has some ${"more ".repeat(page)}words.`));
    });
  }

  get url(): string {
    return this.#url;
  }

  /** Starts the site on a free port. */
  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    const address = this.#server.address();
    this.#url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
