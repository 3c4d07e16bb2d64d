import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { CrashTask } from "./crash-child.ts";

const program = fileURLToPath(new URL("crash-child.ts", import.meta.url));

/** What a child told before it ended. */
export interface Told {
  readonly acknowledged?: number;
  readonly sending?: number;
  readonly step?: string;
  readonly published?: string;
}

/** Runs a child and kills it after so many messages; resolves to all it told. */
export async function runChild(
  task: CrashTask,
  killAfter: number,
): Promise<{ told: Told[]; wasKilled: boolean }> {
  const child = fork(program, [JSON.stringify(task)], { stdio: "inherit", execArgv: [] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const told: Told[] = [];
  child.on("message", (message: Told) => {
    if (told.push(message) === killAfter) child.kill("SIGKILL");
  });
  // After its exit everything that it told has been heard.
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.once("close", (...ending) => resolve(ending));
  });
  if (signal === null && code !== 0) throw new Error(`The child ended with ${code}.`);
  return { told, wasKilled: signal === "SIGKILL" };
}
