import type { Progress } from "./closed-log.ts";

/** A short reading is over before anybody wonders. */
const FIRST_AFTER_MS = 1_000;
const TERMINAL_EVERY_MS = 200;
/** A file of lines, or a log of a job, needs few. */
const LINES_EVERY_MS = 5_000;

export interface ProgressHost {
  readonly printError: (text: string) => void;
  readonly isTerminal: boolean;
  monotonicMs(): number;
}

/** Tells now and then how far a long reading has come: on one line of a terminal, else a line at a time. */
export class ShowProgress {
  readonly #host: ProgressHost;
  #nextMs: number;
  #isShown = false;
  #hasWaited = false;

  constructor(host: ProgressHost) {
    this.#host = host;
    this.#nextMs = host.monotonicMs() + FIRST_AFTER_MS;
  }

  update({ unit, done, total }: Progress): void {
    const nowMs = this.#host.monotonicMs();
    if (nowMs < this.#nextMs) return;
    const { isTerminal } = this.#host;
    this.#nextMs = nowMs + (isTerminal ? TERMINAL_EVERY_MS : LINES_EVERY_MS);
    const share = total === 0 ? 100 : Math.floor((done / total) * 100);
    const text = `read ${share} % of ${total} ${unit}`;
    this.#host.printError(isTerminal ? `\r\u001B[K${text}` : `${text}\n`);
    this.#isShown = true;
  }

  /** Tells once why nothing happens. */
  wait(reason: string): void {
    if (this.#hasWaited) return;
    this.#hasWaited = true;
    this.#host.printError(`${reason}\n`);
  }

  /** Leaves the terminal as it was. */
  end(): void {
    if (this.#isShown && this.#host.isTerminal) this.#host.printError("\r\u001B[K");
    this.#isShown = false;
  }
}
