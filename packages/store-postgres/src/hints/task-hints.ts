import { randomBytes } from "node:crypto";
import type { ResolvedOptions } from "../options.ts";
import { QuietReporter } from "../quiet-reporter.ts";
import type { StatementRunner } from "../run-statement.ts";
import { HintListener } from "./hint-listener.ts";
import { readHints } from "./hint-payload.ts";
import { HintSender } from "./hint-sender.ts";
import { WatchedTasks, type WatchedTasksParts } from "./watched-tasks.ts";

/**
 * What `watch` is made of: the watches, and, with the option `listen`, a sender and a listener of notifications.
 * Everything here may be lost: whoever waits finds out a little later.
 */
export class TaskHints {
  readonly #watched: WatchedTasks;
  readonly #sender: HintSender | undefined;
  readonly #listener: HintListener | undefined;

  constructor(
    options: ResolvedOptions,
    runner: StatementRunner,
    findVersions: WatchedTasksParts["findVersions"],
  ) {
    const { deadlineMs, echoMs, listen, onError, random, watchPollMs } = options;
    const reporter = new QuietReporter(options.reportIntervalMs, onError);
    this.#watched = new WatchedTasks({
      findVersions,
      watchPollMs,
      echoMs,
      isHearing: () => this.#listener?.isHearing === true,
      reporter,
      onError,
    });
    if (listen === undefined) return;
    const channel = `longjobs:${options.schema}`;
    // Tells our own notifications from those of others, also in one process.
    const origin = randomBytes(6).toString("base64url");
    const sender = new HintSender(runner, reporter, channel, origin);
    this.#sender = sender;
    this.#listener = new HintListener({
      makeClient: listen,
      channel,
      deadlineMs,
      echoMs,
      random,
      reporter,
      sendEcho: () => sender.echo(),
      onHint: (payload) => {
        const hints = readHints(payload);
        if (hints.origin === origin) return true;
        for (const key of hints.keys) this.#watched.hint(key);
        return false;
      },
      onHearing: () => this.#watched.lookAtAll(),
    });
  }

  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    // The first watch is what a connection is worth: a store that nobody watches on holds none.
    await this.#listener?.start();
    return this.#watched.add(taskId, onChange);
  }

  /** After a change by this store was committed: durable first, visible second. */
  changed(taskId: string, version: number): void {
    this.#watched.changed(taskId, String(version));
    this.#sender?.announce(taskId);
  }

  async close(): Promise<void> {
    this.#watched.clear();
    await this.#sender?.settle();
    await this.#listener?.stop();
  }
}
