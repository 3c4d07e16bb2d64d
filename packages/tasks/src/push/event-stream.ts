/** The events of a `text/event-stream` body, one at a time, each with the empty line that ends it. */
export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The next event or comment as it came; `undefined` at the end. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end !== -1) {
        const event = this.#text.slice(0, end + 2);
        this.#text = this.#text.slice(end + 2);
        return event;
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  /** Ends the body: whoever writes it is told, and a `next` that waits is over. */
  async cancel(): Promise<void> {
    await this.#reader.cancel();
  }
}

/** A `text/event-stream` body that says when its reader takes more. */
export class EventWriter {
  readonly body: ReadableStream<Uint8Array>;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #pulls: (() => void)[] = [];

  /** @param onCancel - Called when the reader is gone. */
  constructor(onCancel: () => void) {
    this.body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#pulled(),
      cancel: () => {
        this.#ended();
        onCancel();
      },
    });
  }

  /** Resolves when what was written has been taken, or will never be. */
  async ready(): Promise<void> {
    const wanted = this.#controller?.desiredSize ?? 1;
    if (wanted > 0) return;
    await new Promise<void>((resolve) => {
      this.#pulls.push(resolve);
    });
  }

  /** Writes a comment, unless something waits to be taken already. */
  keepAlive(): void {
    if ((this.#controller?.desiredSize ?? 0) > 0) this.write(": keep-alive\n\n");
  }

  /** Writes an event. After the end nothing is written. */
  write(event: string): void {
    this.#controller?.enqueue(this.#encoder.encode(event));
  }

  /** Ends the body behind what was written. Idempotent. */
  close(): void {
    this.#controller?.close();
    this.#ended();
  }

  #ended(): void {
    this.#controller = undefined;
    this.#pulled();
  }

  #pulled(): void {
    for (const resolve of this.#pulls.splice(0)) resolve();
  }
}

/** A message as an event. */
export function toEvent(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

/** The message of an event, or `undefined` for a comment. */
export function readEvent(event: string): unknown {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.length === 0 ? undefined : JSON.parse(lines.map((line) => line.slice(5)).join("\n"));
}
