import { Attempt, type AttemptContext } from "./attempt.ts";
import type { HeldAttempts } from "./held-attempts.ts";
import { instant, type Instant } from "./lease-clock.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { Sightings } from "./sightings.ts";
import { dispatchOwner } from "./task-runner.ts";
import { isTerminal, type Lease, type TaskRecord } from "./task-record.ts";
import { canLease, type ClaimOptions, type TaskPatch } from "./task-store.ts";

/** A record whose lease this engine has just got, and since when it may rely on it. */
export interface TakenTask {
  readonly record: TaskRecord;
  readonly token: string;
  readonly since: Instant;
}

/** What taking over works with. */
export interface TakeOverContext extends AttemptContext {
  readonly attempts: HeldAttempts;
  /** The name under which this engine holds leases. */
  readonly owner: string;
  /** True when this engine begins no work any more. */
  readonly isClosing: () => boolean;
}

/**
 * How an engine gets the lease of a task that it did not create. Only the store decides that a lease is dead: by `claim`
 * where it has it, else by a task that has shown no sign of life for the whole duration of its lease. A lease that waits
 * for a worker, and a task without any, are taken by compare-and-swap.
 */
export class TakeOver {
  readonly #context: TakeOverContext;
  readonly #attempts: HeldAttempts;
  readonly #owner: string;
  readonly #isClosing: () => boolean;
  readonly #sightings: Sightings;

  constructor(context: TakeOverContext) {
    this.#context = context;
    this.#attempts = context.attempts;
    this.#owner = context.owner;
    this.#isClosing = context.isClosing;
    this.#sightings = new Sightings(context.options.monotonicNow);
  }

  /** Claims open tasks that nobody holds. A store that cannot claim gives none. */
  async claim(options: ClaimOptions): Promise<TakenTask[]> {
    const { store, leaseMs } = this.#context.options;
    if (!canLease(store)) return [];
    const since = instant(this.#context.options);
    const records = await store.claim(this.#owner, leaseMs, options);
    return records.map((record) => ({ record, token: record.lease?.token ?? "", since }));
  }

  /** The lease of this one task, or `undefined` while somebody else may hold it or nothing is left to hold. */
  async takeIfFree(record: TaskRecord): Promise<TakenTask | undefined> {
    if (isTerminal(record.status) || this.#attempts.holds(record)) {
      this.#sightings.forget(record.taskId);
      return undefined;
    }
    if (canLease(this.#context.options.store)) {
      const [taken] = await this.claim({ limit: 1, taskIds: [record.taskId] });
      return taken;
    }
    if (!this.#sightings.showsNoOwner(record)) return undefined;
    return this.#swapLease(
      record.taskId,
      (found) => found.lease === undefined || found.version === record.version,
    );
  }

  /** As {@link takeIfFree}, and also the lease of a task that only waits for a worker. */
  takeIfIdle(record: TaskRecord): Promise<TakenTask | undefined> {
    if (isTerminal(record.status) || !waitsForWorker(record.lease)) return this.takeIfFree(record);
    return this.#swapLease(record.taskId, ({ lease }) => waitsForWorker(lease));
  }

  /** The task has ended: nobody waits for signs of life of it. */
  forget(taskId: string): void {
    this.#sightings.forget(taskId);
  }

  /**
   * The lease of this task for a new run of it.
   *
   * @throws `task_terminal`; `lease_lost`, retryable, while another attempt holds it.
   */
  async take(record: TaskRecord): Promise<TakenTask> {
    if (isTerminal(record.status)) throw lifecycleErrors.terminal(record.taskId, record.status);
    const taken = await this.takeIfIdle(record);
    if (taken !== undefined) return taken;
    const { status } = await this.#context.writer.read(record.taskId);
    if (isTerminal(status)) throw lifecycleErrors.terminal(record.taskId, status);
    throw lifecycleErrors.leaseHeld(record.taskId);
  }

  /**
   * Begins a run on a lease that this engine has got: counts it, and counts the crash of the run before, if there was one. When
   * it resolves the task is held, and its heartbeat goes on; or it was given back at once, because this engine closes.
   *
   * @throws `lease_lost` when the task was taken away meanwhile; whatever the store rejects with.
   */
  async begin({ record: { taskId }, token, since }: TakenTask): Promise<Attempt | undefined> {
    let counted: Partial<TaskRecord> = {};
    const record = await this.#context.writer.write(taskId, (found, retrying) => {
      if (isTerminal(found.status)) throw lifecycleErrors.terminal(taskId, found.status);
      if (found.lease?.token !== token) throw lifecycleErrors.leaseLost(taskId);
      if (retrying && found.attempt === counted.attempt) return undefined;
      counted = { attempt: found.attempt + 1, crashes: crashesOf(found, this.#context.options) };
      return { ...counted, released: undefined };
    });
    const attempt = new Attempt(this.#context, { record, recorded: true, leasedSince: since });
    this.#attempts.hold(attempt);
    attempt.observe(record);
    this.#context.onLeased(attempt);
    if (!this.#isClosing()) return attempt;
    await attempt.release();
    return undefined;
  }

  /** Tasks whose signs of life are being awaited. */
  get size(): number {
    return this.#sightings.size;
  }

  async #swapLease(taskId: string, mayTake: (record: TaskRecord) => boolean): Promise<TakenTask | undefined> {
    const { leaseMs, randomId } = this.#context.options;
    const lease: Lease = { owner: this.#owner, token: randomId(), durationMs: leaseMs };
    const since = instant(this.#context.options);
    const record = await this.#context.writer.write(taskId, (found, retrying): TaskPatch | undefined => {
      if (retrying && found.lease?.token === lease.token) return undefined;
      return isTerminal(found.status) || !mayTake(found) ? undefined : { lease };
    });
    if (record.lease?.token !== lease.token) return undefined;
    this.#sightings.forget(taskId);
    return { record, token: lease.token, since };
  }
}

/**
 * The crashes of a task whose lease was taken. A run that was under way when its lease lapsed has crashed; one that was released has
 * not. Nor has one that had been waiting for a person: it did nothing that could take its process down, and it may wait through
 * many restarts. That is known of a question that is open for long: a run that crashes soon after it began is counted.
 */
export function crashesOf(
  { crashes, lastUpdatedAt, released, status }: TaskRecord,
  { leaseMs, now }: Pick<ResolvedLifecycleOptions, "leaseMs" | "now">,
): number {
  const waited = status === "input_required" && now() - Date.parse(lastUpdatedAt) > calmLeases * leaseMs;
  return crashes + (released === true || waited ? 0 : 1);
}

/** The lease that had to lapse, a third of one until that is noticed, and some time in which nothing was written. */
const calmLeases = 2;

function waitsForWorker(lease: Lease | undefined): boolean {
  return lease === undefined || lease.owner === dispatchOwner;
}
