import { readRequestContext } from "@longjobs/core";
import {
  acknowledgeTasks,
  cancelledListen,
  endOfSubscription,
  honorsNothing,
  isAcknowledgement,
  isAnswerTo,
  refusedListen,
  subscriptionIdOf,
  type Acknowledgement,
} from "./listen-messages.ts";
import { isObject, readTaskListen, type RequestId, type TaskListen } from "./listen-request.ts";
import type { TaskPush } from "./task-push.ts";
import type { NotificationSink, TaskSubscription } from "./task-subscription.ts";

export type MessageHandler = (message: object, extra?: unknown) => void;

/** A transport, as far as it is used here. */
export interface MessageTransport {
  onmessage?: MessageHandler | undefined;
  onclose?: (() => void) | undefined;
  send(message: object, options?: unknown): Promise<void>;
}

/**
 * A listen request on its way: asked of the SDK, acknowledged by it and being opened here, open. What comes for it from
 * the SDK meanwhile waits for the acknowledgement.
 */
interface Listen {
  readonly request: TaskListen;
  opening?: Promise<void>;
  subscription?: TaskSubscription;
}

/**
 * Push on one connection. The SDK's own listen route goes first, as over HTTP: what it acknowledges gets our ids, and what it
 * refuses, such as everything on a connection of 2025-11-25, is refused.
 */
export class ListenConnection {
  readonly #transport: MessageTransport;
  readonly #push: TaskPush;
  readonly #listens = new Map<RequestId, Listen>();
  /** The SDK's side. */
  onMessage: MessageHandler | undefined;

  constructor(transport: MessageTransport, push: TaskPush) {
    this.#transport = transport;
    this.#push = push;
  }

  /** A message from the client. */
  receive(message: object, extra: unknown): void {
    const request = readTaskListen(message);
    if (request !== undefined) {
      this.#forget(request.id);
      this.#listens.set(request.id, { request });
    }
    const { method, params } = message as { readonly method?: unknown; readonly params?: unknown };
    if (method === "notifications/cancelled" && isObject(params))
      this.#forget(params["requestId"] as RequestId);
    this.onMessage?.(request?.rest ?? message, extra);
  }

  /** A message of the SDK to the client. */
  async send(message: object, options: unknown): Promise<void> {
    const { id } = message as { readonly id?: RequestId };
    if (id !== undefined && isAnswerTo(message, id)) this.#forget(id);
    const subscriptionId = subscriptionIdOf(message) as RequestId;
    const listen = this.#listens.get(subscriptionId);
    if (listen === undefined) return this.#transport.send(message, options);
    if (listen.opening === undefined && isAcknowledgement(message, subscriptionId)) {
      // Not awaited: the SDK handles one message after the other.
      listen.opening = this.#open(listen, message);
      return;
    }
    await listen.opening;
    if (this.#isCurrent(listen)) await this.#transport.send(message, options);
  }

  /** The connection is gone. */
  closed(): void {
    for (const id of this.#listens.keys()) this.#forget(id);
  }

  async #open(listen: Listen, acknowledgement: Acknowledgement): Promise<void> {
    const { request } = listen;
    try {
      const context = readRequestContext({ mcpReq: { _meta: request.meta } });
      const subscription = await this.#push.open(request, { request: context, entry: this });
      if (!this.#isCurrent(listen)) return subscription.close();
      listen.subscription = subscription;
      await this.#transport.send(acknowledgeTasks(acknowledgement, subscription.taskIds));
      subscription.start(this.#toSink(request.id, honorsNothing(acknowledgement)));
    } catch (error) {
      const told = this.#push.tellError(error);
      if (!this.#isCurrent(listen)) return;
      this.#endAtSdk(request.id);
      await this.#sendLast(refusedListen(request.id, told));
    }
  }

  #toSink(id: RequestId, alone: boolean): NotificationSink {
    return {
      alone,
      ready: async () => undefined,
      send: (message) => this.#transport.send(message),
      end: (why) => {
        this.#endAtSdk(id);
        void this.#sendLast(endOfSubscription(id));
        // Spec "Cancellation": the server "MUST send `notifications/cancelled`" when it tears a subscription down.
        if (why === "closing") void this.#sendLast(cancelledListen(id));
      },
    };
  }

  #isCurrent(listen: Listen): boolean {
    return this.#listens.get(listen.request.id) === listen;
  }

  #forget(id: RequestId): void {
    this.#listens.get(id)?.subscription?.close();
    this.#listens.delete(id);
  }

  #endAtSdk(id: RequestId): void {
    this.#forget(id);
    this.onMessage?.(cancelledListen(id));
  }

  async #sendLast(message: object): Promise<void> {
    try {
      await this.#transport.send(message);
    } catch {
      // The client is gone, and needs to be told nothing.
    }
  }
}
