import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * The smallest load balancer: each request goes to the next instance in turn. One that takes no connection is passed over. A
 * request that was sent is never sent again, because it may have been carried out: its client gets a 502.
 */
export class RoundRobinProxy {
  readonly #server: Server;
  readonly #instances: readonly number[];
  /** How many requests each instance has answered, by its port. */
  readonly answered: Map<number, number>;
  #turn = 0;

  /** @param instances - The ports of the instances. */
  constructor(instances: readonly number[]) {
    this.#instances = instances;
    this.answered = new Map(instances.map((port) => [port, 0]));
    this.#server = createServer((incoming, response) => void this.#forward(incoming, response));
  }

  /** Resolves to the address to call. */
  async open(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await buffer(incoming);
      for (let tried = 0; tried < this.#instances.length; tried += 1) {
        const port = this.#next();
        const answer = await send(port, incoming, body);
        if (answer === "refused") continue;
        if (answer === "broken") break;
        this.answered.set(port, (this.answered.get(port) ?? 0) + 1);
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.once("error", () => response.destroy());
        answer.pipe(response);
        return;
      }
      response.writeHead(502).end();
    } catch {
      // The client has gone: there is nobody to answer.
      response.destroy();
    }
  }

  #next(): number {
    this.#turn += 1;
    return this.#instances[this.#turn % this.#instances.length] ?? 0;
  }
}

/** The head of the answer; `"refused"` when nothing was sent, `"broken"` when the instance ended before it answered. */
function send(
  port: number,
  { method, url, headers }: IncomingMessage,
  body: Buffer,
): Promise<IncomingMessage | "refused" | "broken"> {
  return new Promise((resolve) => {
    const outgoing = request({ host: "127.0.0.1", port, method, path: url, headers, agent: false }, resolve);
    outgoing.once("error", ({ code }: NodeJS.ErrnoException) =>
      resolve(code === "ECONNREFUSED" ? "refused" : "broken"),
    );
    outgoing.end(body);
  });
}
