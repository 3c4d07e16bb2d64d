import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";

/** What the server says about itself, one JSON line each. */
export interface ServerLine {
  readonly event: "listening" | "task";
  readonly port?: number;
  readonly taskId?: string;
  readonly status?: string;
  readonly statusMessage?: string;
}

const deadlineMs = 20_000;

/** The demo's server as a real process of its own, so that it can really be killed. */
export class ServerProcess {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #lines: ServerLine[];
  readonly #wake: Set<() => void>;

  private constructor(child: ChildProcess, port: number, lines: ServerLine[], wake: Set<() => void>) {
    this.#child = child;
    this.port = port;
    this.#lines = lines;
    this.#wake = wake;
  }

  /** Starts the server on a folder; resolves when it listens. */
  static async start(dir: string, port = 0): Promise<ServerProcess> {
    const child = spawn(process.execPath, [fileURLToPath(new URL("server.ts", import.meta.url))], {
      env: { ...process.env, DIR: dir, PORT: String(port) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines: ServerLine[] = [];
    const wake = new Set<() => void>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(JSON.parse(line) as ServerLine);
      for (const look of wake) look();
    });
    child.once("exit", () => {
      for (const look of wake) look();
    });
    const starting = new ServerProcess(child, port, lines, wake);
    const { port: listening } = await starting.waitFor(({ event }) => event === "listening");
    return new ServerProcess(child, listening ?? port, lines, wake);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** Resolves to the first line that fits. Rejects when the server ends first, or after twenty seconds. */
  async waitFor(fits: (line: ServerLine) => boolean): Promise<ServerLine> {
    let timer: NodeJS.Timeout | undefined;
    let look = (): void => undefined;
    try {
      return await new Promise<ServerLine>((resolve, reject) => {
        look = () => {
          const found = this.#lines.find(fits);
          if (found !== undefined) resolve(found);
          else if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
            reject(new Error("The server ended before it said what the demo waits for."));
          }
        };
        timer = setTimeout(
          () => reject(new Error(`The server said nothing for ${deadlineMs} ms.`)),
          deadlineMs,
        );
        this.#wake.add(look);
        look();
      });
    } finally {
      clearTimeout(timer);
      this.#wake.delete(look);
    }
  }

  /** Tells the process to end, and resolves to its exit code when it has. */
  async stop(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGTERM");
    return ended;
  }

  /** Kills the process as a crash would: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    this.#child.kill("SIGKILL");
    await ended;
  }
}
