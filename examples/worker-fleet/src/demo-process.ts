import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Step } from "./tools.ts";

/** What a process of the demo says. */
export interface DemoMessage {
  readonly port?: number;
  readonly ready?: true;
  readonly step?: Step;
}

/** A real process, which can really be killed. */
export interface DemoProcess {
  readonly pid: number;
  readonly port: number;
  /** Resolves when the process has said what fits. */
  waitFor(fits: (message: DemoMessage) => boolean): Promise<DemoMessage>;
  kill(): Promise<void>;
}

const deadlineMs = 30_000;

/** Starts a program of this example; resolves when it is ready. */
export async function startProcess(
  program: URL,
  env: { readonly [name: string]: string },
  onMessage: (message: DemoMessage) => void = () => undefined,
): Promise<DemoProcess> {
  const child = fork(fileURLToPath(program), {
    env: { ...process.env, ...env },
    execArgv: [],
  });
  const said: DemoMessage[] = [];
  child.on("message", (message) => {
    said.push(message as DemoMessage);
    onMessage(message as DemoMessage);
  });
  const waitFor = (fits: (message: DemoMessage) => boolean): Promise<DemoMessage> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${program.pathname} said nothing of it for ${deadlineMs} ms.`)),
        deadlineMs,
      );
      const look = (): void => {
        const found = said.find(fits);
        if (found === undefined) return;
        clearTimeout(timer);
        child.off("message", look);
        resolve(found);
      };
      child.on("message", look);
      child.once("exit", (code) => reject(new Error(`${program.pathname} ended with ${code}.`)));
      look();
    });
  const { port = 0 } = await waitFor((message) => message.port !== undefined || message.ready === true);
  return {
    pid: child.pid ?? 0,
    port,
    waitFor,
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise<void>((resolve) => {
        child.once("exit", () => resolve());
      });
      child.kill("SIGKILL");
      await ended;
    },
  };
}
