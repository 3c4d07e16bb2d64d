import type { RedisClient } from "./client.ts";
import { CommandDeadlines } from "./command-deadlines.ts";
import type { LuaScript } from "./lua-script.ts";
import { clientEnded, isUnknownScript, notConnected, timedOut, toStoreError } from "./redis-errors.ts";

/** Runs scripts on the caller's client, each within the deadline; every failure is one of our errors. */
export class ScriptRunner {
  readonly #client: RedisClient;
  readonly #commandTimeoutMs: number;
  readonly #deadlines: CommandDeadlines;
  #ready: Promise<void> | undefined;

  constructor(client: RedisClient, commandTimeoutMs: number) {
    this.#client = client;
    this.#commandTimeoutMs = commandTimeoutMs;
    this.#deadlines = new CommandDeadlines(commandTimeoutMs);
  }

  /**
   * One round trip. Every call of a store is made of these, so nothing is made here that is not needed.
   *
   * @param read - What the reply means; may throw. @default the reply as it is
   * @throws LongJobsError `store_unavailable` or `no_space`, and what `read` throws
   */
  run<Value = unknown>(
    script: LuaScript,
    keys: readonly string[],
    values: readonly string[],
    read: (reply: unknown) => Value = asItIs as (reply: unknown) => never,
  ): Promise<Value> {
    if (this.#client.status !== "ready") {
      return this.#whenReady().then(() => this.#send(script, keys, values, read));
    }
    return this.#send(script, keys, values, read);
  }

  /** The outcome of any other command, in time and with our errors. */
  finish<Value>(command: Promise<Value>): Promise<Value> {
    return this.#deadlines.within(command, this.#late, asItIs, failAsOurs);
  }

  /** Resolves when no command is under way. Call it once, after the last has begun. */
  whenIdle(): Promise<void> {
    return this.#deadlines.whenIdle();
  }

  #send<Value>(
    script: LuaScript,
    keys: readonly string[],
    values: readonly string[],
    read: (reply: unknown) => Value,
  ): Promise<Value> {
    const command = this.#client.evalsha(script.sha1, keys.length, ...keys, ...values);
    return this.#deadlines.within(command, this.#late, read, async (error) =>
      read(await this.#sendWhole(error, script, keys, values)),
    );
  }

  /** After a refusal. A script that was sent whole is known to the server from then on. */
  async #sendWhole(
    error: unknown,
    { source }: LuaScript,
    keys: readonly string[],
    values: readonly string[],
  ): Promise<unknown> {
    if (!isUnknownScript(error)) throw toStoreError(error);
    return this.finish(this.#client.eval(source, keys.length, ...keys, ...values));
  }

  readonly #late = (): Error => timedOut(this.#commandTimeoutMs);

  /**
   * Waits here, not in the driver's queue: what waits there is sent as soon as there is a connection, however
   * long ago its caller was told that it failed.
   */
  async #whenReady(): Promise<void> {
    if (this.#client.status === "end") throw clientEnded();
    // The driver tries again by itself; when it does not get through, the deadline says so.
    if (this.#client.status === "wait") this.#client.connect().catch(() => undefined);
    this.#ready ??= new Promise((resolve) => {
      this.#client.once("ready", () => {
        this.#ready = undefined;
        resolve();
      });
    });
    return this.#deadlines.within(
      this.#ready,
      () => notConnected(this.#commandTimeoutMs),
      asItIs,
      failAsOurs,
    );
  }
}

function asItIs<Value>(value: Value): Value {
  return value;
}

async function failAsOurs(error: unknown): Promise<never> {
  throw toStoreError(error);
}
