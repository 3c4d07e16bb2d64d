import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Client } from "pg";
import { waitUntil } from "./wait-until.ts";

/** The folder with `postgres` and `initdb`; `undefined` when there is none on this machine. */
export function findBinaries(): string | undefined {
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    // Where Debian keeps them, the newest first.
    ...globSync("/usr/lib/postgresql/*/bin").toSorted().toReversed(),
  ];
  return folders.find((folder) => existsSync(join(folder, "postgres")) && existsSync(join(folder, "initdb")));
}

/** A server of the test's own, which may be killed. Without fsync: these tests kill processes, not machines. */
export class OwnServer {
  readonly #binaries: string;
  readonly #dir: string;
  readonly port: number;
  #child: ChildProcess | undefined;
  /** A test run that is given up leaves no server behind. */
  readonly #endAtOnce = (): void => void this.#end("SIGQUIT");

  private constructor(binaries: string, dir: string, port: number) {
    this.#binaries = binaries;
    this.#dir = dir;
    this.port = port;
  }

  static async start(): Promise<OwnServer> {
    const binaries = findBinaries();
    if (binaries === undefined) throw new Error("There is no postgres on this machine.");
    const dir = mkdtempSync(join(tmpdir(), "store-postgres-"));
    if (unprivileged !== undefined) chownSync(dir, unprivileged.uid, unprivileged.gid);
    execFileSync(
      join(binaries, "initdb"),
      ["-D", join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"],
      { stdio: ["ignore", "ignore", "pipe"], cwd: dir, ...unprivileged },
    );
    const server = new OwnServer(binaries, dir, await freePort());
    await server.run();
    return server;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** Starts the process and waits until it answers. */
  async run(): Promise<void> {
    const settings = [
      `port=${this.port}`,
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${this.#dir}`,
      "fsync=off",
      "max_connections=200",
    ];
    const child = spawn(
      join(this.#binaries, "postgres"),
      ["-D", join(this.#dir, "data"), ...settings.flatMap((setting) => ["-c", setting])],
      { stdio: "ignore", cwd: this.#dir, ...unprivileged },
    );
    this.#child = child;
    process.once("exit", this.#endAtOnce);
    await waitUntil(
      () => {
        if (child.exitCode !== null) throw new Error(`postgres ended with code ${child.exitCode}.`);
        return answers(this.url);
      },
      "the test's own server answers",
      60_000,
    );
  }

  /** Kills the server as a failing machine does: its children end with it, and nothing is shut down. */
  async kill(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  /** Stops the clock of the server and of all its children; their connections stay. */
  pause(): void {
    this.#signalAll("SIGSTOP");
  }

  resume(): void {
    this.#signalAll("SIGCONT");
  }

  /** Ends the server and removes its files. */
  async remove(): Promise<void> {
    await this.#end("SIGQUIT");
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    process.off("exit", this.#endAtOnce);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    // One that sleeps would not hear of it.
    this.resume();
    child.kill(signal);
    this.#child = undefined;
    await ended;
  }

  /** The first process, which makes all others, before its children: none is missed. */
  #signalAll(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    process.kill(pid, signal);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    for (const child of children.filter((text) => text !== "")) signalIfThere(Number(child), signal);
  }
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // One that has ended since it was listed.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** True when a server answers there. */
export async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // The error is the answer; a second event of the same failure must not end the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    // Nobody there, or not yet ready: both are a no.
    return false;
  } finally {
    await client.end();
  }
}

/** `postgres` refuses to run as root: then somebody with fewer rights runs it. */
const unprivileged = process.getuid?.() === 0 ? findUser("postgres", "nobody") : undefined;

function findUser(...names: readonly string[]): { readonly uid: number; readonly gid: number } {
  for (const name of names) {
    try {
      const [uid, gid] = ["-u", "-g"].map((flag) =>
        Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })),
      );
      if (uid !== undefined && gid !== undefined) return { uid, gid };
    } catch {
      // There is no such user; the next one may exist.
    }
  }
  throw new Error(`None of the users ${names.join(", ")} exists to run postgres.`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
