import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const server = fileURLToPath(new URL("server.ts", import.meta.url));

/** An instance as a real process of its own, so that it can really be killed. It keeps its port when it is started again. */
export class InstanceProcess {
  readonly #env: { readonly [name: string]: string };
  readonly #program: string;
  #child: ChildProcess | undefined;
  #port = 0;
  #listens = false;
  #log = "";
  readonly #crashes: string[] = [];

  /**
   * @param env - What the instance finds in its environment.
   * @param program - What it runs: the server of this example, or one that tells its port as that does.
   */
  constructor(env: { readonly [name: string]: string }, program: string = server) {
    this.#env = env;
    this.#program = program;
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

  /** How those of its processes ended that ended by themselves, or not in order. */
  get crashes(): readonly string[] {
    return this.#crashes;
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    const env = { ...process.env, ...this.#env, PORT: String(this.#port) };
    const child = fork(this.#program, { env, execArgv: [], stdio: ["ignore", "inherit", "pipe", "ipc"] });
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
    child.once("exit", (code, signal) => {
      // It listens until it is told to end.
      const inOrder = !this.#listens && (code === 0 || signal === "SIGKILL");
      if (!inOrder) this.#crashes.push(`Process ${child.pid} ended with ${signal ?? code}.`);
    });
  }

  /** Kills the process as a crash would: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Tells the process to end, and resolves when it has. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** Lets the process sleep, as a laptop does or a machine without memory: it keeps its connections. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  /** Lets it go on where it was. */
  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#listens = false;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }
}
