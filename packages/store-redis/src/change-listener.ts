import { LongJobsError, reportBackgroundError, type ErrorListener } from "@longjobs/core";
import type { RedisConnection } from "./client.ts";

/** What a {@link ChangeListener} needs to know. */
export interface ChangeListenerOptions {
  /** A new connection that is not open yet, or `undefined` when no server is known now. */
  readonly connect: () => RedisConnection | undefined;
  /** The outcome of a command, or a rejection when it takes too long. */
  readonly inTime: <T>(command: Promise<T>) => Promise<T>;
  /** Called when somebody said that a task changed, and when that may have been missed. */
  readonly onHint: (taskId: string) => void;
  /** Called when nothing is heard any more, also of a watch that begins then; and when everything is heard again. */
  readonly onHearing: (hears: boolean) => void;
  readonly onError: ErrorListener | undefined;
  /** How often the connection is asked whether it is there. @default 10_000 */
  readonly heartbeatMs?: number;
}

/** The wait after a connection was lost; each failure that follows doubles it, up to the longest. */
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

/** Often enough that a connection that is dead without saying so costs a few polls, not an hour of them. */
const HEARTBEAT_MS = 10_000;

/** However often the connection fails, its failures are reported this far apart. */
const REPORT_INTERVAL_MS = 30_000;

interface Channel {
  readonly taskId: string;
  watches: number;
}

/**
 * One connection of the store's own that listens to the channels of watched tasks. It opens with the first watch.
 * All it brings are hints: nothing waits for it while it is down, because watched tasks are looked at meanwhile.
 *
 * It is opening (there is a connection), open (it may subscribe), or waiting to open again (there is a timer). Any
 * failure leads from the first two to the third, the timer from the third to the first. What changed while it was
 * not open is unknown: once it is open again every listener is told to look.
 */
export class ChangeListener {
  readonly #options: ChangeListenerOptions;
  readonly #channels = new Map<string, Channel>();
  #connection: RedisConnection | undefined;
  #isOpen = false;
  #opening: Promise<void> | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  /** Since the last heartbeat: a connection that opens and breaks at once is not well. */
  #failures = 0;
  #mayHaveMissed = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ChangeListenerOptions) {
    this.#options = options;
  }

  /**
   * Listens to a channel until {@link leave} was called as often. Resolves when the server has confirmed it, or
   * when there is no server to wait for. Never rejects.
   */
  async join(name: string, taskId: string): Promise<void> {
    const known = this.#channels.get(name);
    if (known === undefined) this.#channels.set(name, { taskId, watches: 1 });
    else known.watches += 1;
    if (this.#isOpen && this.#connection !== undefined) await this.#subscribe(this.#connection, [name]);
    else if (this.#retryTimer === undefined) await (this.#opening ?? this.#startOpening());
    if (!this.#isOpen) this.#options.onHearing(false);
  }

  /** The tasks that are watched. */
  watched(): string[] {
    return Array.from(this.#channels.values(), ({ taskId }) => taskId);
  }

  leave(name: string): void {
    const channel = this.#channels.get(name);
    if (channel === undefined || (channel.watches -= 1) > 0) return;
    this.#channels.delete(name);
    const connection = this.#connection;
    if (!this.#isOpen || connection === undefined) return;
    this.#options
      .inTime(connection.unsubscribe(name))
      .catch((error: unknown) => this.#lose(connection, error));
  }

  close(): void {
    clearTimeout(this.#retryTimer);
    this.#channels.clear();
    this.#drop();
  }

  #startOpening(): Promise<void> {
    const opening = this.#open().finally(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    this.#opening = opening;
    return opening;
  }

  async #open(): Promise<void> {
    const connection = this.#options.connect();
    this.#connection = connection;
    if (connection === undefined) return this.#lose(undefined, new Error("No server is known."));
    let reason: unknown = new Error("The connection ended.");
    connection.on("error", (error) => (reason = error));
    connection.on("end", () => this.#lose(connection, reason));
    connection.on("message", (name) => this.#hint(name));
    try {
      await this.#options.inTime(connection.connect());
    } catch (error) {
      return this.#lose(connection, error);
    }
    if (this.#connection !== connection) return;
    // Before the first subscription, so that whoever joins meanwhile subscribes too.
    this.#isOpen = true;
    await this.#subscribe(connection, [...this.#channels.keys()]);
    if (this.#connection !== connection) return;
    const { heartbeatMs = HEARTBEAT_MS, onHearing } = this.#options;
    onHearing(true);
    this.#heartbeatTimer = setInterval(() => void this.#beat(connection), heartbeatMs).unref();
    if (!this.#mayHaveMissed) return;
    this.#mayHaveMissed = false;
    for (const name of Array.from(this.#channels.keys())) this.#hint(name);
  }

  async #subscribe(connection: RedisConnection, names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    try {
      await this.#options.inTime(connection.subscribe(...names));
    } catch (error) {
      this.#lose(connection, error);
    }
  }

  async #beat(connection: RedisConnection): Promise<void> {
    try {
      await this.#options.inTime(connection.ping());
      this.#failures = 0;
    } catch (error) {
      this.#lose(connection, error);
    }
  }

  #hint(name: string): void {
    const taskId = this.#channels.get(name)?.taskId;
    if (taskId !== undefined) this.#options.onHint(taskId);
  }

  /** Only the failure of the present connection counts: each is told of several times, and old ones late. */
  #lose(connection: RedisConnection | undefined, error: unknown): void {
    if (connection !== this.#connection) return;
    this.#drop();
    this.#mayHaveMissed = true;
    this.#failures += 1;
    const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), LONGEST_RETRY_MS);
    // Many instances lose a server at one moment: they need not come back at one.
    this.#retryTimer = setTimeout(() => this.#retry(), delayMs * (1 + Math.random() / 2)).unref();
    this.#options.onHearing(false);
    this.report(error);
  }

  #retry(): void {
    this.#retryTimer = undefined;
    // Nobody listens any more: the next watch opens it.
    if (this.#channels.size > 0) void this.#startOpening();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#isOpen = false;
    this.#opening = undefined;
    clearInterval(this.#heartbeatTimer);
    connection?.disconnect();
  }

  /** Says that changes are not heard, and why; at most once per interval. */
  report(error: unknown): void {
    const nowMs = performance.now();
    if (nowMs - this.#reportedAtMs < REPORT_INTERVAL_MS) return;
    this.#reportedAtMs = nowMs;
    const interrupted = new LongJobsError(
      "store_unavailable",
      "Notifications of changes are interrupted; watched tasks are looked at by interval meanwhile. Connecting again.",
      { retryable: true, cause: error },
    );
    reportBackgroundError(interrupted, this.#options.onError);
  }
}
