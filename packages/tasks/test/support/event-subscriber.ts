import { expect } from "vitest";

import { assertSubscribed, type WireMessage } from "./wire.ts";

/** Deadline for a message that must come. */
const patienceMs = 5_000;

/** One subscription over HTTP, read message by message. Every message is checked. */
export class EventSubscriber {
  readonly id: number | string;
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #decoder = new TextDecoder();
  #text = "";
  /** Comments that came so far. */
  comments = 0;

  constructor(id: number | string, response: Response) {
    this.id = id;
    this.response = response;
    this.#reader = response.body?.getReader();
  }

  /** The next message; `undefined` at the end of the stream. */
  async next(): Promise<WireMessage | undefined> {
    const isStream = this.response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end === -1) {
        const { done, value } = await this.#read();
        if (done && !isStream && this.#text !== "") return JSON.parse(this.#text) as WireMessage;
        if (done) return undefined;
        this.#text += this.#decoder.decode(value, { stream: true });
        continue;
      }
      const event = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      const line = event.split("\n").find((one) => one.startsWith("data:"));
      if (line === undefined) {
        this.comments += 1;
        continue;
      }
      const message = JSON.parse(line.slice(5)) as WireMessage;
      assertSubscribed(message, this.id);
      return message;
    }
  }

  /** The ids of the acknowledgement, which must be the first message. */
  async acknowledged(): Promise<readonly string[] | undefined> {
    const first = await this.next();
    expect(first?.method).toBe("notifications/subscriptions/acknowledged");
    const agreed = first?.params?.["notifications"] as { readonly taskIds?: readonly string[] } | undefined;
    return agreed?.taskIds;
  }

  /** The next message, which must be of a task: as `tasks/get` would answer, without what belongs to the answer. */
  async task(): Promise<{ readonly [key: string]: unknown }> {
    const message = await this.next();
    expect(message?.method, JSON.stringify(message)).toBe("notifications/tasks");
    const { _meta, ...task } = message?.params ?? {};
    return task;
  }

  /** Reads tasks up to one with a status. */
  async until(status: string): Promise<{ readonly [key: string]: unknown }> {
    for (;;) {
      const task = await this.task();
      if (task["status"] === status) return task;
    }
  }

  /** The server ended the subscription, and said so; nothing else was left. */
  async ended(): Promise<void> {
    const last = await this.next();
    expect(last).toMatchObject({ id: this.id, result: { resultType: "complete" } });
    expect(await this.next()).toBeUndefined();
  }

  /** The client goes away. */
  async close(): Promise<void> {
    await this.#reader?.cancel();
  }

  async #read(): Promise<ReadableStreamReadResult<Uint8Array>> {
    if (this.#reader === undefined) return { done: true, value: undefined };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`Nothing came for ${patienceMs} ms.`)), patienceMs);
    });
    try {
      return await Promise.race([this.#reader.read(), late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
