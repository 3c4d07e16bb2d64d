import {
  assertClaim,
  assertLeaseMs,
  storeErrors,
  type ClaimOptions,
  type HeldLease,
  type LeasingTaskStore,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
  type WatchableTaskStore,
} from "@longjobs/core";
import type { PostgresQueryable } from "./client.ts";
import { decodeText, encodeText } from "./columns.ts";
import { openTransactionDoor, type TransactionDoor } from "./create-in-transaction.ts";
import { decodeRow } from "./decode-row.ts";
import { bytesAfter, encodePatch, type EncodedPatch } from "./encode-patch.ts";
import { encodeRecord } from "./encode-record.ts";
import { TaskHints } from "./hints/task-hints.ts";
import { migrateSchema } from "./migrate.ts";
import { OperationGate } from "./operation-gate.ts";
import { resolveOptions, type PostgresTaskStoreOptions, type ResolvedOptions } from "./options.ts";
import { judgeFault } from "./postgres-errors.ts";
import { StatementRunner } from "./run-statement.ts";
import { claimNamedTasks } from "./sql/claim-named-tasks.ts";
import { claimTasks } from "./sql/claim-tasks.ts";
import { createTask } from "./sql/create-task.ts";
import { findVersions } from "./sql/find-versions.ts";
import { getTask } from "./sql/get-task.ts";
import { PatchStatements } from "./patch-statements.ts";
import { RecordSizes } from "./record-sizes.ts";
import { renewLeases } from "./sql/renew-leases.ts";
import { sweepTasks } from "./sql/sweep-tasks.ts";

/** Rows that one statement of a sweep deletes: its locks and its time stay short. */
const SWEEP_BATCH = 500;

/** Leases that one statement renews. */
const RENEW_BATCH = 1_000;

/** How often an update looks why it wrote nothing, before the task is left to whoever changes it so fast. */
const MAX_LOOKS = 3;

/**
 * Keeps tasks in Postgres, for any number of processes. Call {@link migrate} once before the first use.
 *
 * Each method is one statement in a transaction of its own, on whichever connection the pool gives: encode, run,
 * decode. Time is the server's. What a call changed is told to watchers after it was committed.
 */
export class PostgresTaskStore implements TaskStore, WatchableTaskStore, LeasingTaskStore {
  readonly #options: ResolvedOptions;
  readonly #runner: StatementRunner;
  readonly #hints: TaskHints;
  readonly #gate = new OperationGate();
  readonly #patches = new PatchStatements();
  readonly #sizes = new RecordSizes();
  #closing: Promise<void> | undefined;

  /** @throws TypeError or RangeError for an option out of bounds. Touches nothing else: no connection is made. */
  constructor(options: PostgresTaskStoreOptions) {
    this.#options = resolveOptions(options);
    this.#runner = new StatementRunner(this.#options);
    this.#hints = new TaskHints(this.#options, this.#runner, (taskIds) => this.#findVersions(taskIds));
  }

  /**
   * Makes the schema and its tables, or brings them to the version of this package. Safe to call from any number of
   * processes at once, at every start; needs rights to create only when there is something to create.
   *
   * Rejects with `schema_too_new` when a later version of this package has been there; nothing has changed then.
   */
  async migrate(): Promise<void> {
    await this.#gate.run(async () => {
      try {
        await migrateSchema(this.#options.pool, this.#options.schema);
      } catch (error) {
        throw judgeFault(error).error;
      }
    });
  }

  async create(record: TaskRecord): Promise<void> {
    this.#gate.assertOpen();
    const { taskId, version } = record;
    const { values, bytes } = encodeRecord(record, this.#options.maxRecordBytes);
    await this.#gate.run(async () => {
      const { rowCount } = await this.#runner.run(createTask, values);
      if (rowCount !== 1) throw storeErrors.taskExists(taskId);
      this.#sizes.saw(taskId, version, bytes);
      this.#hints.changed(taskId, version);
    });
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    return this.#gate.run(() => this.#get(taskId));
  }

  async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    this.#gate.assertOpen();
    const encoded = encodePatch(taskId, patch, this.#options.maxRecordBytes);
    return this.#gate.run(async () => {
      await this.#update(taskId, encoded, expectedVersion);
      this.#hints.changed(taskId, expectedVersion + 1);
      return expectedVersion + 1;
    });
  }

  async sweep(): Promise<number> {
    return this.#gate.run(async () => {
      let swept = 0;
      for (;;) {
        const { rowCount } = await this.#runner.run(sweepTasks, [SWEEP_BATCH], { repeatable: true });
        swept += rowCount ?? 0;
        if ((rowCount ?? 0) < SWEEP_BATCH) return swept;
      }
    });
  }

  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    this.#gate.assertOpen();
    assertClaim(owner, leaseMs, options);
    const { limit, taskIds, tools } = options;
    const values = [
      `{"owner":${JSON.stringify(owner)},"token":"`,
      `","durationMs":${leaseMs}}`,
      leaseMs,
      Math.min(limit, MAX_LIMIT),
      tools?.map(encodeText) ?? null,
    ];
    return this.#gate.run(async () => {
      const { rows } =
        taskIds === undefined
          ? await this.#runner.run(claimTasks, values)
          : await this.#runner.run(claimNamedTasks, [...values, taskIds.map(encodeText)]);
      const claimed = rows.map((row) => this.#decode(row));
      for (const { taskId, version } of claimed) this.#hints.changed(taskId, version);
      return claimed;
    });
  }

  async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    this.#gate.assertOpen();
    assertLeaseMs(leaseMs);
    // In one order for everybody: two statements that lock the same rows do not wait for each other in a circle.
    const held = leases.toSorted((left, right) => (left.taskId < right.taskId ? -1 : 1));
    return this.#gate.run(async () => {
      const lost: string[] = [];
      for (let at = 0; at < held.length; at += RENEW_BATCH) {
        lost.push(...(await this.#renew(held.slice(at, at + RENEW_BATCH), leaseMs)));
      }
      return lost;
    });
  }

  async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
    return this.#gate.run(() => this.#hints.watch(taskId, onChange));
  }

  /**
   * A door into a transaction of yours, on the client that has it open: a task created there exists when you
   * commit, together with what else you wrote, or not at all.
   */
  inTransaction(client: PostgresQueryable): TransactionDoor {
    this.#gate.assertOpen();
    const door = openTransactionDoor(client, this.#runner, this.#options.maxRecordBytes);
    return { create: (record) => this.#gate.run(() => door.create(record)) };
  }

  /** Waits for calls under way, and ends what `listen` made. The pool stays open: it is yours. Never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#gate.close();
    await this.#hints.close();
    this.#sizes.clear();
  }

  async #get(taskId: string): Promise<TaskRecord | undefined> {
    const { rows } = await this.#runner.run(getTask, [encodeText(taskId)], { repeatable: true });
    return rows[0] === undefined ? undefined : this.#decode(rows[0]);
  }

  #decode(row: object): TaskRecord {
    const { record, bytes } = decodeRow(row);
    this.#sizes.saw(record.taskId, record.version, bytes);
    return record;
  }

  /**
   * Nearly always one statement. When it wrote nothing, the reason is looked for; when there is none any more, because
   * the task has changed since, it is tried again.
   */
  async #update(taskId: string, patch: EncodedPatch, expectedVersion: number): Promise<void> {
    const { maxRecordBytes } = this.#options;
    const known = this.#sizes.find(taskId, expectedVersion);
    // A bound: what the patch replaces is counted as if it stayed.
    let bound = known === undefined ? Infinity : known + patch.bytes;
    for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
      const counts = bound > maxRecordBytes;
      const written = await this.#write(taskId, patch, expectedVersion, counts);
      if (written !== undefined)
        return this.#sizes.saw(taskId, expectedVersion + 1, counts ? written : bound);
      const found = (await this.#findVersions([taskId])).get(taskId);
      if (found === undefined) throw storeErrors.unknownTask(taskId);
      if (Number(found) !== expectedVersion) {
        throw storeErrors.versionConflict(taskId, expectedVersion, Number(found));
      }
      const record = await this.#get(taskId);
      const bytes = record?.version === expectedVersion ? bytesAfter(record, patch) : 0;
      if (bytes > maxRecordBytes) throw storeErrors.recordTooLarge(taskId, bytes, maxRecordBytes);
      bound = Infinity;
    }
    throw storeErrors.versionConflict(taskId, expectedVersion, expectedVersion);
  }

  /**
   * The bytes of the record if the statement found the expected version and room for the patch, 0 if it did not count
   * them; else `undefined`.
   */
  async #write(
    taskId: string,
    patch: EncodedPatch,
    expectedVersion: number,
    counts: boolean,
  ): Promise<number | undefined> {
    // No row has a version that cannot be told from its neighbours.
    if (!Number.isSafeInteger(expectedVersion) || !Number.isSafeInteger(expectedVersion + 1))
      return undefined;
    const { others } = patch;
    const values = [
      encodeText(taskId),
      String(expectedVersion),
      ...patch.values,
      ...(others === undefined ? [] : [others.names, others.set]),
      ...(counts ? [patch.columnBytes, this.#options.maxRecordBytes] : []),
    ];
    const { rowCount, rows } = await this.#runner.run(this.#patches.statementFor(patch, counts), values);
    if (rowCount !== 1) return undefined;
    const [row] = rows as readonly { readonly bytes?: string }[];
    return Number(row?.bytes ?? 0);
  }

  async #findVersions(taskIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { rows } = await this.#runner.run(findVersions, [taskIds.map(encodeText)], { repeatable: true });
    const found = rows as readonly { readonly task_id: string; readonly version: string }[];
    return new Map(found.map(({ task_id: taskId, version }) => [decodeText(taskId), version]));
  }

  async #renew(held: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    const values = [
      held.map(({ taskId }) => encodeText(taskId)),
      held.map(({ token }) => encodeText(token)),
      leaseMs,
    ];
    const { rows } = await this.#runner.run(renewLeases, values, { repeatable: true });
    const renewed = new Set((rows as readonly { readonly task_id: string }[]).map((row) => row.task_id));
    return held.map(({ taskId }) => taskId).filter((taskId) => !renewed.has(encodeText(taskId)));
  }
}

/** The largest `integer` of Postgres. */
const MAX_LIMIT = 2 ** 31 - 1;
