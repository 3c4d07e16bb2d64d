import { fork, type ChildProcess } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

import type { JsonObject } from "@longjobs/core";

import { sendRequest, type Answer } from "../../examples/load-balanced/src/send-request.ts";
import type { ServerConfig } from "./server.ts";

const program = fileURLToPath(new URL("server.ts", import.meta.url));

/** What the processes of a fleet have in common. */
export type FleetConfig = Pick<ServerConfig, "place" | "witness" | "leaseMs">;

/** What one process of a fleet has for itself. */
export interface StartOptions extends Partial<Omit<ServerConfig, "place" | "witness">> {
  /** @default a free one */
  readonly port?: number;
}

/** The processes of a server, each on a port that it keeps when it is started again. */
export class Fleet {
  readonly #config: FleetConfig;
  readonly #children = new Map<number, ChildProcess>();

  constructor(config: FleetConfig) {
    this.#config = config;
  }

  get ports(): readonly number[] {
    return [...this.#children.keys()];
  }

  /** Starts a process and resolves to its port when it listens or is dead. */
  async start(options: StartOptions = {}): Promise<number> {
    const own = options.port ?? (await freePort());
    const config: ServerConfig = { ...this.#config, ...options, port: own };
    const child = fork(program, [JSON.stringify(config)], { execArgv: [] });
    this.#children.set(own, child);
    await new Promise<void>((resolve) => {
      child.once("message", () => resolve());
      child.once("exit", () => resolve());
    });
    return own;
  }

  /** Resolves when a process has ended, by which signal. */
  async ended(port: number): Promise<NodeJS.Signals | null> {
    const child = this.#children.get(port);
    if (child === undefined) throw new Error(`No process on port ${port}.`);
    if (child.exitCode !== null || child.signalCode !== null) return child.signalCode;
    return new Promise((resolve) => {
      child.once("exit", (_code, signal) => resolve(signal));
    });
  }

  /** True while the process lives. */
  lives(port: number): boolean {
    const child = this.#children.get(port);
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** The process id behind a port. */
  pid(port: number): number {
    return this.#children.get(port)?.pid ?? 0;
  }

  async kill(port: number): Promise<void> {
    if (!this.lives(port)) return;
    const ended = this.ended(port);
    this.#children.get(port)?.kill("SIGKILL");
    await ended;
  }

  /** Lets a process go on that was stopped. */
  resume(port: number): void {
    this.#children.get(port)?.kill("SIGCONT");
  }

  async killAll(): Promise<void> {
    await Promise.all(this.ports.map((port) => this.kill(port)));
  }

  /**
   * One request to one process, as a client with the Tasks extension sends it.
   *
   * @returns `undefined` when the process died before it answered.
   */
  async send(
    port: number,
    method: string,
    params: JsonObject,
    meta: JsonObject = {},
  ): Promise<Answer | undefined> {
    return sendRequest(`http://127.0.0.1:${port}/mcp`, { method, params, meta });
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => {
    probe.listen(0, "127.0.0.1", resolve);
  });
  const address = probe.address();
  await new Promise((resolve) => {
    probe.close(resolve);
  });
  if (typeof address !== "object" || address === null) throw new Error("No free port.");
  return address.port;
}
