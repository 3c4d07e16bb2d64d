import { InMemoryTransport, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { afterEach } from "vitest";

import type { Tasks } from "../../src/index.ts";
import { legacyFrame, modernFrame, type CallOptions } from "./frames.ts";
import { assertLegacyWire, assertWire, type WireMessage, type WireResult } from "./wire.ts";

type Frame = ReturnType<typeof legacyFrame>;

/** What carries frames to a server and back. */
export interface FrameChannel {
  readonly send: (frame: object) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** What a server over stdio has besides the tasks that are attached to it. */
export interface StdioDoorOptions {
  /** Tells of changes too. @default false: everything else must not need it */
  readonly push?: boolean;
  /** Called with the instance, before tasks are attached. */
  readonly extend?: (mcp: McpServer) => void;
  /** Another version of the SDK. */
  readonly sdk?: typeof currentSdk;
}

const currentSdk = { InMemoryTransport, McpServer, serveStdio };

interface Waiting {
  readonly method: string;
  readonly resolve: (message: WireMessage) => void;
  readonly reject: (error: unknown) => void;
}

let open: StdioDoor[] = [];

afterEach(async () => {
  const all = open;
  open = [];
  for (const door of all) await door.close();
});

/** One connection to a server, as over stdio. Every message that comes is checked. */
export class StdioDoor {
  readonly #channel: FrameChannel;
  readonly #waiting = new Map<unknown, Waiting>();
  readonly notifications: WireMessage[] = [];
  /** What came for subscriptions, their ends included, in order. */
  readonly subscribed: WireMessage[] = [];
  readonly #listening = new Set<unknown>();
  #legacy = false;

  constructor(connect: (onMessage: (message: WireMessage) => void) => FrameChannel) {
    this.#channel = connect((message) => this.#receive(message));
    open.push(this);
  }

  /** `serveStdio` at the other end of a pair of transports in this process. */
  static async serve(tasks: Tasks, options: StdioDoorOptions = {}): Promise<StdioDoor> {
    const { push = false, sdk = currentSdk, extend } = options;
    const [client, server] = sdk.InMemoryTransport.createLinkedPair();
    const serving = sdk.serveStdio(
      () => {
        const mcp = new sdk.McpServer({ name: "test", version: "1.0.0" });
        extend?.(mcp);
        tasks.attach(mcp);
        return mcp;
      },
      { transport: push ? tasks.wrapTransport(server) : server },
    );
    return StdioDoor.over(client, () => serving.close());
  }

  /** A server that is connected by hand, which makes it one of 2025-11-25. */
  static async connect(mcp: McpServer): Promise<StdioDoor> {
    const [client, server] = InMemoryTransport.createLinkedPair();
    await mcp.connect(server);
    return StdioDoor.over(client, () => mcp.close());
  }

  /** The near end of a pair of transports, whichever SDK made it. */
  static async over(
    client: Pick<InMemoryTransport, "send" | "start">,
    close: () => Promise<void>,
  ): Promise<StdioDoor> {
    const door = new StdioDoor((onMessage) => {
      Object.assign(client, { onmessage: onMessage });
      return { send: (frame) => client.send(frame as never), close };
    });
    await client.start();
    return door;
  }

  /** Opens a 2025-11-25 session. */
  async initialize(capabilities: object = {}): Promise<WireResult> {
    this.#legacy = true;
    const clientInfo = { name: "test", version: "1.0.0" };
    const { result } = await this.#sendFrame(
      legacyFrame("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo }),
    );
    await this.notify("notifications/initialized");
    return result ?? {};
  }

  /** Sends a request of the revision of this connection. */
  send(method: string, params: object = {}, options: CallOptions = {}): Promise<WireMessage> {
    return this.#sendFrame(this.#legacy ? legacyFrame(method, params) : modernFrame(method, params, options));
  }

  /** Sends a request whose answer is not waited for, and gives its id. */
  async post(method: string, params: object = {}, options: CallOptions = {}): Promise<number> {
    const frame = modernFrame(method, params, options);
    await this.#channel.send(frame);
    return frame.id;
  }

  /** Subscribes, and gives the id of the subscription. */
  async listen(notifications: unknown, options: CallOptions = {}): Promise<number> {
    const frame = modernFrame("subscriptions/listen", { notifications }, options);
    this.#listening.add(frame.id);
    await this.#channel.send(frame);
    return frame.id;
  }

  /** Ends a subscription, or any other request. */
  cancel(requestId: number): Promise<void> {
    return this.notify("notifications/cancelled", { requestId });
  }

  notify(method: string, params: object = {}): Promise<void> {
    return this.#channel.send({ jsonrpc: "2.0", method, params });
  }

  /** Answers a request that the server sent. */
  answer(id: unknown, result: object): Promise<void> {
    return this.#channel.send({ jsonrpc: "2.0", id, result });
  }

  close(): Promise<void> {
    return this.#channel.close();
  }

  /** Requests that the server sent and that are not answered yet. */
  readonly asked: WireMessage[] = [];

  #sendFrame(frame: Frame): Promise<WireMessage> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(frame.id, { method: frame.method, resolve, reject });
      this.#channel.send(frame).catch(reject);
    });
  }

  #receive(message: WireMessage): void {
    const meta = (message.params?.["_meta"] ?? {}) as { readonly [key: string]: unknown };
    const id =
      message.method === "notifications/cancelled"
        ? message.params?.["requestId"]
        : (message.id ?? meta["io.modelcontextprotocol/subscriptionId"]);
    if (this.#listening.has(id)) {
      this.subscribed.push(message);
      return;
    }
    if (message.method !== undefined) {
      if (message.id !== undefined) this.asked.push(message);
      else if (message.method.startsWith("notifications/progress")) this.notifications.push(message);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (waiting === undefined) return;
    try {
      if (this.#legacy) assertLegacyWire(waiting.method, message);
      else assertWire(waiting.method, message);
      waiting.resolve(message);
    } catch (error) {
      waiting.reject(error);
    }
  }
}
