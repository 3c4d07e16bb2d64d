import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Ask, Tell } from "../crash/messages.ts";

const program = fileURLToPath(new URL("../crash/child.ts", import.meta.url));

/** A store in a process of its own. */
export class ChildStore {
  readonly told: Tell[] = [];
  readonly process: ChildProcess;
  #waiting: { fits: (tell: Tell) => boolean; resolve: (tell: Tell) => void }[] = [];

  private constructor(process: ChildProcess) {
    this.process = process;
    process.on("message", (tell: Tell) => {
      this.told.push(tell);
      const fits = this.#waiting.filter((one) => one.fits(tell));
      this.#waiting = this.#waiting.filter((one) => !fits.includes(one));
      for (const { resolve } of fits) resolve(tell);
    });
    onTestFinished(() => void process.kill("SIGKILL"));
  }

  static async start(): Promise<ChildStore> {
    const child = new ChildStore(fork(program, { stdio: "inherit", execArgv: [] }));
    await child.hears((tell) => tell.told === "ready");
    return child;
  }

  /** Says something and waits for the answer. */
  async ask(ask: Ask): Promise<Tell> {
    const answer = this.hears(() => true);
    this.say(ask);
    return answer;
  }

  say(ask: Ask): void {
    this.process.send(ask);
  }

  /** The next message that fits. */
  hears(fits: (tell: Tell) => boolean): Promise<Tell> {
    return new Promise((resolve) => this.#waiting.push({ fits, resolve }));
  }

  /** Kills the process, and waits until it is gone and everything it told has been heard: that comes after its exit. */
  async kill(): Promise<void> {
    const closed = once(this.process, "close");
    this.process.kill("SIGKILL");
    await closed;
  }
}
