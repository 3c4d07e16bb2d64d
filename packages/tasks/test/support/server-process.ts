import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

import { modernFrame, type CallOptions } from "./frames.ts";
import { parseFrames, routingHeaders } from "./http-door.ts";
import { assertWire, type WireMessage } from "./wire.ts";

const program = fileURLToPath(new URL("http-server/child.ts", import.meta.url));

interface ChildMessage {
  readonly port?: number;
  readonly taskId?: string;
  readonly status?: string;
}

/** A server in a process of its own, which can be killed and started again on its directory and port. */
export class ServerProcess {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #messages: ChildMessage[];

  private constructor(child: ChildProcess, messages: ChildMessage[], port: number) {
    this.#child = child;
    this.#messages = messages;
    this.port = port;
  }

  static async start(dir: string, port = 0): Promise<ServerProcess> {
    const child = fork(program, [dir, `${port}`], { execArgv: [] });
    const messages: ChildMessage[] = [];
    child.on("message", (message) => messages.push(message as ChildMessage));
    const { port: bound } = await waitFor(child, messages, (message) => message.port !== undefined);
    return new ServerProcess(child, messages, bound ?? 0);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** Sends a request of revision 2026-07-28, on a connection of its own. */
  async call(method: string, params: object, options?: CallOptions): Promise<WireMessage> {
    const response = await fetch(this.url, {
      method: "POST",
      headers: routingHeaders(method, params),
      body: JSON.stringify(modernFrame(method, params, options)),
    });
    const frames = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
    const answer = frames.find((frame) => frame.method === undefined);
    if (answer === undefined) throw new Error("The server sent no answer.");
    assertWire(method, answer);
    return answer;
  }

  /** Resolves when the server has said that a task has a status. */
  async until(taskId: string, status: string): Promise<void> {
    await waitFor(
      this.#child,
      this.#messages,
      (message) => message.taskId === taskId && message.status === status,
    );
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => {
      this.#child.once("exit", resolve);
    });
    this.#child.kill("SIGKILL");
    await ended;
  }
}

function waitFor(
  child: ChildProcess,
  messages: readonly ChildMessage[],
  isIt: (message: ChildMessage) => boolean,
): Promise<ChildMessage> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => reject(new Error("The server did not say it within 20 s.")), 20_000);
    const look = (): void => {
      const found = messages.find(isIt);
      if (found === undefined) return;
      clearTimeout(deadline);
      child.off("message", look);
      resolve(found);
    };
    child.on("message", look);
    child.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
    look();
  });
}
