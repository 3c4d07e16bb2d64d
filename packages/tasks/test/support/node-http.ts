import { createServer, type Server } from "node:http";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { afterEach } from "vitest";

import { EventSubscriber } from "./event-subscriber.ts";
import { modernFrame, type CallOptions } from "./frames.ts";
import { parseFrames, routingHeaders, type HttpDoor } from "./http-door.ts";
import { assertWire, type WireMessage } from "./wire.ts";

let listening: Server[] = [];

afterEach(() => {
  const all = listening;
  listening = [];
  for (const server of all) {
    server.close();
    server.closeAllConnections();
  }
});

/** A door behind a real socket. */
export class NodeHttp {
  readonly #server: Server;
  readonly #url: string;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.#url = url;
  }

  static async listen(door: HttpDoor): Promise<NodeHttp> {
    const serve = toNodeHandler(door.handler);
    const server = createServer((request, response) => void serve(request, response));
    listening.push(server);
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("The server has no port.");
    return new NodeHttp(server, `http://127.0.0.1:${address.port}/mcp`);
  }

  /** Sends a request; rejects when `signal` is aborted, which closes the connection. */
  async send(
    method: string,
    params: object,
    options: CallOptions & { readonly signal?: AbortSignal } = {},
  ): Promise<WireMessage> {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: routingHeaders(method, params),
      body: JSON.stringify(modernFrame(method, params, options)),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const messages = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
    for (const message of messages) assertWire(method, message);
    const answer = messages.find((message) => message.method === undefined);
    if (answer === undefined) throw new Error("The server sent no answer.");
    return answer;
  }

  /** Subscribes; the stream is read by the test. */
  async listen(notifications: object): Promise<EventSubscriber> {
    const frame = modernFrame("subscriptions/listen", { notifications });
    const response = await fetch(this.#url, {
      method: "POST",
      headers: routingHeaders(frame.method, {}),
      body: JSON.stringify(frame),
    });
    return new EventSubscriber(frame.id, response);
  }

  /** Where the server is. */
  get url(): string {
    return this.#url;
  }

  /** Breaks every connection. */
  closeConnections(): void {
    this.#server.closeAllConnections();
  }
}
