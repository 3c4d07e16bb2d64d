import {
  assertClaim,
  assertLeaseMs,
  storeErrors,
  TaskWatchers,
  type ClaimOptions,
  type HeldLease,
  type LeasingTaskStore,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
  type WatchableTaskStore,
} from "@longjobs/core";
import { ChangeListener } from "./change-listener.ts";
import { checkServer } from "./check-server.ts";
import { TaskClaims } from "./claim-tasks.ts";
import { connectListener } from "./connect-listener.ts";
import { prepareCreate } from "./create-record.ts";
import { indexOfTool, LeaseIndexes } from "./lease-indexes.ts";
import { findVersions } from "./lua/find-versions.ts";
import { getTask } from "./lua/get-task.ts";
import { OperationGate } from "./operation-gate.ts";
import { resolveOptions, type RedisTaskStoreOptions } from "./options.ts";
import { renewLeases } from "./renew-leases.ts";
import { ScriptRunner } from "./script-runner.ts";
import type { StoreContext } from "./store-context.ts";
import { placeOf, StoreKeys } from "./store-keys.ts";
import { sweepTasks } from "./sweep-tasks.ts";
import { readRecord } from "./task-fields.ts";
import { prepareUpdate } from "./update-record.ts";
import { WatchLooks } from "./watch-looks.ts";

/**
 * Keeps tasks in Redis or Valkey, for any number of processes. A call is one script, which compares, writes and
 * sets the life of a task in one step, on the server's clock.
 *
 * A task is a hash with a field for each field of its record, as JSON text that no script reads, and some of the
 * store's own, which begin with `@`: `@born`, `@due` (the deadline of its lease), `@token`, `@bytes`, `@home` (the
 * index of its tool) and `@index` (the index it is in, while it is open and no other kind of record). A create, an
 * update with the right version, a claim and a renewal change them, each together with the entry in the index.
 */
export class RedisTaskStore implements TaskStore, WatchableTaskStore, LeasingTaskStore {
  readonly #context: StoreContext;
  readonly #claims: TaskClaims;
  readonly #watchers: TaskWatchers;
  readonly #listener: ChangeListener;
  readonly #looks: WatchLooks;
  readonly #checkServer: () => Promise<void>;
  readonly #channelPrefix: string;
  #started = false;
  #starting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /**
   * Opens nothing: the server is looked at with the first call.
   *
   * @throws TypeError or RangeError for an option that makes no sense
   */
  constructor(options: RedisTaskStoreOptions) {
    const resolved = resolveOptions(options);
    const { client, commandTimeoutMs, keyPrefix, maxRecordBytes, onError } = resolved;
    const runner = new ScriptRunner(client, commandTimeoutMs);
    const keys = new StoreKeys(keyPrefix);
    const gate = new OperationGate();
    this.#context = { runner, keys, indexes: new LeaseIndexes(), gate, maxRecordBytes, onError };
    this.#claims = new TaskClaims(this.#context);
    this.#watchers = new TaskWatchers(onError);
    const onHint = (taskId: string): void => this.#watchers.notify(taskId);
    this.#listener = new ChangeListener({
      connect: () => connectListener(client),
      inTime: (command) => runner.finish(command),
      onHint,
      onHearing: (hears) => (hears ? this.#looks.stop() : this.#looks.start()),
      onError,
    });
    this.#looks = new WatchLooks({
      keys,
      findVersions: (tasks) => runner.run(findVersions, tasks, [], asVersions),
      watched: () => this.#listener.watched(),
      onHint,
      onFailure: (error) => this.#listener.report(error),
      intervalMs: resolved.watchPollMs,
    });
    // The driver puts it in front of keys, which scripts use as the names of channels, but not of channels.
    this.#channelPrefix = client.options?.keyPrefix ?? "";
    this.#checkServer = () => checkServer({ client, runner, formatKey: keys.format, onError });
  }

  create(record: TaskRecord): Promise<void> {
    return this.#call(() => prepareCreate(this.#context, record));
  }

  get(taskId: string): Promise<TaskRecord | undefined> {
    const { runner, keys } = this.#context;
    const { member, shard } = placeOf(taskId);
    const task = [keys.task(shard, member)];
    return this.#call(() => () => runner.run(getTask, task, [], (reply) => readRecord(taskId, reply)));
  }

  update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    return this.#call(() => prepareUpdate(this.#context, taskId, patch, expectedVersion));
  }

  sweep(): Promise<number> {
    return this.#call(() => () => this.#context.gate.run(() => sweepTasks(this.#context)));
  }

  /**
   * @see LeasingTaskStore. Two round trips: all shards are asked for candidates at once, then each candidate is
   * claimed by a script of its own. More while others take them first.
   */
  claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    return this.#call(() => {
      assertClaim(owner, leaseMs, options);
      this.#context.indexes.learn((options.tools ?? []).map(indexOfTool));
      return () => this.#context.gate.run(() => this.#claims.claim(owner, leaseMs, options));
    });
  }

  renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    return this.#call(() => {
      assertLeaseMs(leaseMs);
      return () => this.#context.gate.run(() => renewLeases(this.#context, leases, leaseMs));
    });
  }

  /** @see WatchableTaskStore. Resolves when the server has confirmed it, or when it cannot: it is only a hint. */
  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    this.#assertOpen();
    const { member, shard } = placeOf(taskId);
    const channel = this.#channelPrefix + this.#context.keys.task(shard, member);
    const forget = this.#watchers.add(taskId, onChange);
    await this.#listener.join(channel, taskId);
    let ended = false;
    return async () => {
      if (ended) return;
      ended = true;
      this.#listener.leave(channel);
      await forget();
    };
  }

  /** Waits for calls under way, then closes the connection that listens. The client stays open. Never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { gate, runner } = this.#context;
    await gate.whenIdle();
    this.#listener.close();
    this.#looks.stop();
    await runner.whenIdle();
    this.#watchers.clear();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw storeErrors.storeClosed();
  }

  /**
   * A call that closing waits for, on a server that has been looked at.
   *
   * @param prepare - Run at once, while the arguments are as the caller gave them.
   */
  #call<T>(prepare: () => () => Promise<T>): Promise<T> {
    try {
      this.#assertOpen();
      const call = prepare();
      return this.#started ? call() : this.#context.gate.run(() => this.#start().then(call));
    } catch (error) {
      // What prepare() threw, as a rejection.
      // oxlint-disable-next-line prefer-promise-reject-errors
      return Promise.reject(error);
    }
  }

  /** Once, for all calls that come meanwhile; again with the next call after a failure. */
  #start(): Promise<void> {
    this.#starting ??= this.#checkServer().then(
      () => {
        this.#started = true;
      },
      (error: unknown) => {
        this.#starting = undefined;
        throw error;
      },
    );
    return this.#starting;
  }
}

function asVersions(reply: unknown): readonly (string | null)[] {
  return reply as (string | null)[];
}
