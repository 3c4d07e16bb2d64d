import type { QuietReporter } from "../quiet-reporter.ts";
import type { StatementRunner } from "../run-statement.ts";
import { notify } from "../sql/notify.ts";
import { hintKey, packHints } from "./hint-payload.ts";

/**
 * Tells other processes which tasks changed, after the change was committed, in statements of its own: a
 * transaction that notifies makes all others of the database wait for its commit. One statement is under way at a
 * time; what comes meanwhile goes together, each task once.
 */
export class HintSender {
  readonly #runner: StatementRunner;
  readonly #reporter: QuietReporter;
  readonly #channel: string;
  readonly #origin: string;
  #keys = new Set<string>();
  #sending: Promise<void> | undefined;

  constructor(runner: StatementRunner, reporter: QuietReporter, channel: string, origin: string) {
    this.#runner = runner;
    this.#reporter = reporter;
    this.#channel = channel;
    this.#origin = origin;
  }

  /** Call it when the change can be read. */
  announce(taskId: string): void {
    this.#keys.add(hintKey(taskId));
    this.#sending ??= this.#send();
  }

  /** Sends a notification that only its sender looks for. */
  async echo(): Promise<void> {
    await this.#runner.run(notify, [this.#channel, packHints(this.#origin, [])]);
  }

  /** Resolves when everything announced so far was sent. */
  async settle(): Promise<void> {
    await this.#sending;
  }

  async #send(): Promise<void> {
    // Whoever else changes something in this turn goes along.
    await Promise.resolve();
    while (this.#keys.size > 0) {
      const payloads = packHints(this.#origin, this.#keys);
      this.#keys = new Set();
      try {
        await this.#runner.run(notify, [this.#channel, payloads]);
      } catch (error) {
        // Only a hint: whoever waits looks by itself, a little later.
        this.#reporter.report("notify", error);
      }
    }
    this.#sending = undefined;
  }
}
