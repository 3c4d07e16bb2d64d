import type { PostgresListenClient } from "../client.ts";
import { withDeadline } from "../deadline.ts";
import { judgeFault, notHeard } from "../postgres-errors.ts";
import type { QuietReporter } from "../quiet-reporter.ts";

/** What the listener needs of its store. */
export interface HintListenerParts {
  readonly makeClient: () => PostgresListenClient | Promise<PostgresListenClient>;
  readonly channel: string;
  readonly deadlineMs: number;
  readonly echoMs: number;
  readonly random: () => number;
  readonly reporter: QuietReporter;
  /** Sends a notification of our own, on another connection. */
  readonly sendEcho: () => Promise<void>;
  /** Takes what was heard; true when it shows that we hear ourselves. */
  readonly onHint: (payload: string) => boolean;
  /** It is heard from now on; something may have been missed before. */
  readonly onHearing: () => void;
}

/** The pause after the first failure, and the longest one, in milliseconds; each is twice the one before. */
const FIRST_PAUSE_MS = 250;
const LAST_PAUSE_MS = 30_000;

/** How long a connection may take to end before its socket is closed, in milliseconds. */
const END_MS = 1_000;

/**
 * Hears notifications on a connection of its own, for as long as it runs.
 *
 * It is *deaf* at first, and whenever its connection fails. It then makes a client, sends LISTEN, and sends itself an
 * echo through the pool: when that is heard it is *hearing*. Each `echoMs` it sends another; one that was sent and
 * not heard by the next makes it deaf, whatever the connection says of itself. A failure is followed by a pause
 * that doubles and is never shorter than an eighth of a second, so that an outage does not bring a storm of
 * connections.
 */
export class HintListener {
  readonly #parts: HintListenerParts;
  readonly #stopping = new AbortController();
  #isHearing = false;
  #running: Promise<void> | undefined;
  #first: Promise<void> | undefined;
  #settleFirst = (): void => undefined;

  constructor(parts: HintListenerParts) {
    this.#parts = parts;
  }

  /** Whether what others do is heard now. */
  get isHearing(): boolean {
    return this.#isHearing;
  }

  /** Starts to listen, once; resolves when it hears, or when the first attempt has failed. */
  start(): Promise<void> {
    if (this.#first === undefined) {
      this.#first = new Promise((resolve) => {
        this.#settleFirst = resolve;
      });
      this.#running = this.#run();
    }
    return this.#first;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#settleFirst();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { random, reporter } = this.#parts;
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#listen();
      } catch (error) {
        if (!signal.aborted) reporter.report("listen", judgeFault(error).error);
      }
      failures = this.#isHearing ? 1 : failures + 1;
      this.#isHearing = false;
      this.#settleFirst();
      const pauseMs = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
      await waitFor(pauseMs * (0.5 + random() / 2), signal);
    }
  }

  /** One connection, from its beginning to its end. */
  async #listen(): Promise<void> {
    const { channel, deadlineMs, makeClient, onHint } = this.#parts;
    const client = await withDeadline(Promise.resolve(makeClient()), deadlineMs);
    const line = new Line(this.#stopping.signal);
    client.on("error", (error) => line.cut(error));
    client.on("end", () => line.cut(new Error("The connection that listens has ended.")));
    client.on("notification", ({ channel: heardOn, payload }) => {
      if (heardOn === channel && payload !== undefined && onHint(payload)) line.hear();
    });
    try {
      await withDeadline(client.connect(), deadlineMs);
      await withDeadline(client.query({ text: `LISTEN "${channel}"` }), deadlineMs);
      await this.#hearEchoes(line);
    } finally {
      await letGo(client);
    }
  }

  async #hearEchoes(line: Line): Promise<void> {
    const { echoMs, onHearing, reporter, sendEcho } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      const sent = await sendEcho().then(
        () => true,
        (error: unknown) => {
          // The pool fails, which says nothing of this connection.
          reporter.report("notify", error);
          return false;
        },
      );
      const heard = await line.echo(echoMs);
      if (sent && !heard && !this.#stopping.signal.aborted) throw notHeard();
      if (heard && !this.#isHearing) {
        this.#isHearing = true;
        onHearing();
        this.#settleFirst();
      }
      if (heard) await line.pause(echoMs);
    }
  }
}

/** What has come in on one connection. */
class Line {
  readonly #stopped: AbortSignal;
  readonly #cut = new AbortController();
  #heard = false;
  #onHeard: (() => void) | undefined;

  constructor(stopped: AbortSignal) {
    this.#stopped = stopped;
  }

  hear(): void {
    this.#heard = true;
    this.#onHeard?.();
  }

  cut(error: Error): void {
    this.#cut.abort(error);
  }

  /** Whether an echo has come since the last call, or comes within this time. @throws when the connection is cut */
  async echo(withinMs: number): Promise<boolean> {
    if (!this.#heard) {
      const heard = new AbortController();
      this.#onHeard = () => heard.abort();
      await waitFor(withinMs, AbortSignal.any([this.#stopped, this.#cut.signal, heard.signal]));
      this.#onHeard = undefined;
    }
    this.#cut.signal.throwIfAborted();
    const wasHeard = this.#heard;
    this.#heard = false;
    return wasHeard;
  }

  /** @throws when the connection is cut */
  async pause(ms: number): Promise<void> {
    await waitFor(ms, AbortSignal.any([this.#stopped, this.#cut.signal]));
    this.#cut.signal.throwIfAborted();
  }
}

/** Ends a connection; one that does not answer loses its socket. */
async function letGo(client: PostgresListenClient): Promise<void> {
  const ended = client.end().catch(() => undefined);
  await Promise.race([ended, waitFor(END_MS)]);
  client.connection?.stream.destroy();
}

/** Waits, but no longer than until the signal is aborted, and without keeping the process alive. */
function waitFor(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    if (signal?.aborted === true) end();
    else signal?.addEventListener("abort", end);
  });
}
