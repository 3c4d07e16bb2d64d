import type { Schedule, TaskFeed } from "@longjobs/core";
import { toTaskNotification } from "../task-wire.ts";
import type { RequestId } from "./listen-request.ts";

/** Where the notifications of a subscription go. */
export interface NotificationSink {
  /** True when nothing but tasks comes this way: then the subscription is over with the last of them. */
  readonly alone: boolean;
  /** Resolves when the reader takes more, or never will again. */
  ready(): Promise<void>;
  /** Rejects when there is no reader any more. */
  send(message: object): Promise<void>;
  /** Tells the reader that the subscription is over: nothing is left to tell, or the server closes. */
  end(why: "complete" | "closing"): void;
}

/** How long a reader may take over what changed before the server closed. */
const lastWordsMs = 1_000;

/**
 * One subscription to tasks. A state is read when the reader takes it and sent before the next one is read, so that a slow
 * reader gets the latest state of each task, and what lies between is never held. It ends once: when the reader is
 * gone, when nothing is left to tell, or when the server closes.
 */
export class TaskSubscription {
  readonly #id: RequestId;
  readonly #onClosed: () => void;
  #feed: TaskFeed | undefined;
  #sink: NotificationSink | undefined;
  #pumping: Promise<void> | undefined;
  #closed = false;
  #finished = false;

  constructor(id: RequestId, onClosed: () => void) {
    this.#id = id;
    this.#onClosed = onClosed;
  }

  /** The ids that were agreed to. */
  get taskIds(): readonly string[] {
    return this.#feed?.taskIds ?? [];
  }

  /** Begins to hear of changes, by `follow`. @throws what `follow` rejects with; then it is closed. */
  async open(follow: (onChange: () => void) => Promise<TaskFeed>): Promise<void> {
    try {
      this.#feed = await follow(() => this.#wake());
    } catch (error) {
      this.close();
      throw error;
    }
    if (this.#closed) this.#feed.close();
  }

  /** Begins to tell: first each task as it is. */
  start(sink: NotificationSink): void {
    this.#sink = sink;
    if (this.#finished) sink.end("closing");
    else this.#wake();
  }

  /** The server closes: what has changed until now is told, if the reader takes it soon. */
  async finish(schedule: Schedule): Promise<void> {
    if (this.#pumping !== undefined) await soon(this.#pumping, schedule);
    if (this.#closed) return;
    this.#finished = true;
    this.close();
    this.#sink?.end("closing");
  }

  /** The reader is gone. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#feed?.close();
    this.#onClosed();
  }

  #wake(): void {
    if (this.#sink === undefined || this.#feed === undefined || this.#closed) return;
    if (this.#feed.hasChanges) this.#pumping ??= this.#pump(this.#feed, this.#sink);
    else this.#endIfOver(this.#feed, this.#sink);
  }

  async #pump(feed: TaskFeed, sink: NotificationSink): Promise<void> {
    try {
      while (!this.#closed && feed.hasChanges) {
        await sink.ready();
        const task = await feed.take();
        if (task !== undefined) await sink.send(toTaskNotification(task, this.#id));
      }
    } catch {
      // There is no reader any more, and nobody else to tell.
      this.close();
    } finally {
      this.#pumping = undefined;
    }
    this.#endIfOver(feed, sink);
  }

  #endIfOver(feed: TaskFeed, sink: NotificationSink): void {
    if (this.#closed || !sink.alone || !feed.isOver) return;
    this.close();
    sink.end("complete");
  }
}

async function soon(work: Promise<void>, schedule: Schedule): Promise<void> {
  let cancelTimer = (): void => undefined;
  const timeUp = new Promise<void>((resolve) => {
    cancelTimer = schedule(resolve, lastWordsMs, true);
  });
  await Promise.race([work, timeUp]);
  cancelTimer();
}
