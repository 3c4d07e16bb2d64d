import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("server.ts", import.meta.url));

/** An instance as a real process of its own, so that it can really be killed. It keeps its port when it is started again. */
export class InstanceProcess {
  readonly #env: { readonly [name: string]: string };
  #child: ChildProcess | undefined;
  #port = 0;
  #listens = false;
  #log = "";

  /** @param env - What the instance finds in its environment. */
  constructor(env: { readonly [name: string]: string }) {
    this.#env = env;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get port(): number {
    return this.#port;
  }

  /** True from when it listens until it is killed. */
  get listens(): boolean {
    return this.#listens;
  }

  /** What its processes have reported so far. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    const env = { ...process.env, ...this.#env, PORT: String(this.#port) };
    const child = fork(program, { env, execArgv: [], stdio: ["ignore", "inherit", "pipe", "ipc"] });
    this.#child = child;
    child.stderr?.on("data", (text: Buffer) => {
      this.#log += String(text);
    });
    this.#port = await new Promise<number>((resolve, reject) => {
      child.once("message", (message) => resolve((message as { port: number }).port));
      child.once("exit", (code) =>
        reject(new Error(`An instance ended with ${code} before it listened.\n${this.#log}`)),
      );
    });
    this.#listens = true;
  }

  /** Kills the process as a crash would: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    this.#listens = false;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }
}
