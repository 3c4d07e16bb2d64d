import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

/** A Redis server that a test started, to pause, kill and start again. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Stops its clock, not its connections; {@link resume} lets it go on. */
  pause(): void;
  resume(): void;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Starts it again with the same port and the same files. */
  restart(): Promise<void>;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

/** True when there is a `redis-server` to start. */
export function hasRedisServer(): boolean {
  return spawnSync("redis-server", ["--version"]).status === 0;
}

/** Starts a server of the test's own on a free port. It keeps nothing on disk unless the options say so. */
export async function startRedisServer(
  options: readonly string[] = [],
  findPort: () => Promise<number> = freePort,
): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), "store-redis-"));
  // The port may be taken by somebody else between the look and the start.
  for (let attempt = 0; ; attempt += 1) {
    const port = await findPort();
    const standard = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir, "--save", ""];
    const start = (): Promise<ChildProcess> =>
      launch([...standard, ...options], /Ready to accept connections/);
    try {
      return ownedServer(dir, port, start, await start());
    } catch (error) {
      if (attempt === 4) throw error;
    }
  }
}

/** Starts a Sentinel that makes the replica of this primary the next one when it is gone, after half a second. */
export async function startSentinel(primaryPort: number): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), "store-redis-"));
  const port = await freePort();
  const config = join(dir, "sentinel.conf");
  const rules = [
    `monitor tasks 127.0.0.1 ${primaryPort} 1`,
    "down-after-milliseconds tasks 500",
    "failover-timeout tasks 5000",
  ];
  writeFileSync(config, rules.map((rule) => `sentinel ${rule}\n`).join(""));
  const options = [config, "--sentinel", "--port", String(port), "--bind", "127.0.0.1", "--dir", dir];
  const start = (): Promise<ChildProcess> => launch(options, /Sentinel ID is/);
  return ownedServer(dir, port, start, await start());
}

function ownedServer(
  dir: string,
  port: number,
  start: () => Promise<ChildProcess>,
  first: ChildProcess,
): RedisServer {
  let child = first;
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await exited;
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    kill,
    restart: async () => {
      await kill();
      child = await start();
    },
    stop: async () => {
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Resolves when the server has said that it is there. */
function launch(options: readonly string[], isThere: RegExp): Promise<ChildProcess> {
  const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  // A test run that fails ends all the same.
  child.unref();
  (child.stdout as Socket).unref();
  return new Promise((resolve, reject) => {
    let log = "";
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`redis-server ended at once:\n${log}`)));
    child.stdout.on("data", (text: Buffer) => {
      log += String(text);
      if (isThere.test(log)) resolve(child);
    });
  });
}

/** A test that fails half way leaves no server behind. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
