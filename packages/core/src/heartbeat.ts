import { isRefusal, type Attempt } from "./attempt.ts";
import type { HeldAttempts } from "./held-attempts.ts";
import { instant, leftMs, type Instant } from "./lease-clock.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { isLongJobsError } from "./longjobs-error.ts";
import { extendedTtlMs } from "./task-retention.ts";
import type { TaskRecord } from "./task-record.ts";
import { canLease, canWatch, isExclusive, type LeasingTaskStore, type TaskPatch } from "./task-store.ts";
import type { TaskWriter } from "./task-writer.ts";

/**
 * A store that watches is looked at all the same, every so many beats: a hint that was lost costs two leases at most. Reading
 * each running task at every beat would cost more than all leases together.
 */
const beatsPerLook = 6;

/** Of a renewal that fails: three tries more between two beats, so that little of a lease is lost to an outage. */
const retriesPerLease = 12;

/**
 * Keeps the leases of one engine: every third of a lease all of them are renewed, in one call where the store can renew.
 * A lease that could not be renewed is given up here, before anybody else may take it: when its duration has passed since the
 * last good renewal was sent, by either clock, the attempt's signal is aborted with `lease_lost`. In a store that belongs to
 * this process nobody else takes it: work goes on after a machine has slept, and is given up when the store has a new owner.
 */
export class Heartbeat {
  readonly #options: ResolvedLifecycleOptions;
  readonly #writer: TaskWriter;
  readonly #attempts: HeldAttempts;
  /** Attempts with calls of their own under way: one that hangs costs the others nothing. */
  readonly #tended = new Set<Attempt>();
  /** Attempts whose own heartbeat failed last: they alone have another before the next beat. */
  readonly #unrenewed = new Set<Attempt>();
  #cancelLapse: () => void = () => undefined;
  #cancelRetry: (() => void) | undefined;
  #beats = 0;
  #beating: Promise<void> | undefined;
  #renewing: Promise<void> | undefined;
  #failedAt: Instant | undefined;
  #stopped = false;

  constructor(options: ResolvedLifecycleOptions, writer: TaskWriter, attempts: HeldAttempts) {
    this.#options = options;
    this.#writer = writer;
    this.#attempts = attempts;
  }

  /** True for one lease after a failure of the store: whoever is behind it then may be slow, not dead. */
  get storeIsDoubtful(): boolean {
    return this.#failedAt !== undefined && leftMs(this.#failedAt, this.#options.leaseMs, this.#options) > 0;
  }

  /** Ends the timer; resolves when no renewal is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelLapse();
    this.#cancelRetry?.();
    await Promise.all([this.#beating, this.#renewing]);
  }

  /** Says that the store has failed, so that nobody's lease is taken for dead too soon. */
  noteFailure(): void {
    this.#failedAt = instant(this.#options);
  }

  /** A lease that took long to get may lapse before the next beat. */
  watch(attempt: Attempt): void {
    const { leaseMs } = this.#options;
    if (leftMs(attempt.leasedSince, leaseMs, this.#options) <= leaseMs / 3) this.#giveUpLapsed();
  }

  /**
   * One beat: gives up what has lapsed, renews the rest, and keeps running tasks from expiring. Resolves when the renewal is
   * over, before the next beat is due. Never rejects.
   */
  async beat(): Promise<void> {
    this.#giveUpLapsed();
    this.#beating ??= this.#renewAll().finally(() => {
      this.#beating = undefined;
    });
    await this.#beating;
    this.#giveUpLapsed();
  }

  async #renewAll(): Promise<void> {
    const { store } = this.#options;
    this.#beats += 1;
    const looks = canLease(store) && (!canWatch(store) || this.#beats % beatsPerLook === 0);
    await this.#renewTogether();
    for (const attempt of this.#attempts.recorded())
      if (!this.#tended.has(attempt)) void this.#tend(attempt, looks || attempt.lapsed);
  }

  /** Between two beats nothing is done but what failed: a store that is away is not asked for everything so often. */
  async #renewAgain(): Promise<void> {
    this.#giveUpLapsed();
    for (const attempt of this.#unrenewed)
      if (!attempt.ended && !this.#tended.has(attempt)) void this.#tend(attempt, false);
    this.#unrenewed.clear();
    await this.#renewTogether();
    this.#giveUpLapsed();
  }

  #renewTogether(): Promise<void> {
    const { store } = this.#options;
    if (!canLease(store)) return Promise.resolve();
    this.#renewing ??= this.#renewInTime(store, this.#attempts.leased()).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewInTime(store: LeasingTaskStore, held: readonly Attempt[]): Promise<void> {
    if (held.length === 0) return;
    // Less than the time between two beats: the next one tries again, whatever became of this call.
    if (await this.#options.timers.within(this.#renew(store, held), this.#options.leaseMs / 4)) return;
    this.#renewalFailed(lifecycleErrors.renewalHangs(held.length));
  }

  async #renew(store: LeasingTaskStore, held: readonly Attempt[]): Promise<void> {
    const sentAt = instant(this.#options);
    try {
      const leases = held.map(({ taskId, token }) => ({ taskId, token }));
      const lost = new Set(await store.renew(leases, this.#options.leaseMs));
      for (const attempt of held) {
        if (lost.has(attempt.taskId)) void attempt.lose();
        else attempt.renewed(sentAt);
      }
    } catch (error) {
      this.#renewalFailed(error);
    }
  }

  /** Tried again well before the leases lapse: an outage that is shorter than a lease ends no work. */
  #renewalFailed(error: unknown): void {
    this.noteFailure();
    this.#options.reportError(error);
    if (isLongJobsError(error, "store_locked"))
      for (const attempt of this.#attempts.leased()) attempt.lapse();
    if (this.#stopped) return;
    this.#cancelRetry ??= this.#options.timers.later(
      () => {
        this.#cancelRetry = undefined;
        void this.#renewAgain();
      },
      Math.ceil(this.#options.leaseMs / retriesPerLease),
    );
  }

  /** What one task alone needs: without `renew` its heartbeat, a look where no hint can be relied on, and time to live. */
  async #tend(attempt: Attempt, looks: boolean): Promise<void> {
    this.#tended.add(attempt);
    try {
      if (!canLease(this.#options.store)) await this.#renewByWrite(attempt);
      if (looks && !attempt.ended) await attempt.look();
      if (!attempt.ended) await this.#extendTtl(attempt);
    } finally {
      this.#tended.delete(attempt);
    }
  }

  /** The heartbeat as an ordinary write: it changes the version, which is the sign of life. */
  async #renewByWrite(attempt: Attempt): Promise<void> {
    if (attempt.lapsed) return;
    const sentAt = instant(this.#options);
    try {
      const record = await this.#writer.write(attempt.taskId, ({ lease }) =>
        lease?.token === attempt.token ? { lease } : undefined,
      );
      attempt.observe(record);
      attempt.renewed(sentAt);
    } catch (error) {
      if (isRefusal(error)) return attempt.look();
      this.#unrenewed.add(attempt);
      this.#renewalFailed(error);
    }
  }

  /** The time to live of a running task moves on; the record that was seen last says when. */
  async #extendTtl(attempt: Attempt): Promise<void> {
    if (this.#extension(attempt.lastSeen, attempt) === undefined) return;
    try {
      await this.#writer.write(attempt.taskId, (found) => this.#extension(found, attempt));
    } catch (error) {
      if (isRefusal(error)) await attempt.look();
      else this.#options.reportError(error);
    }
  }

  #extension(record: TaskRecord, { token }: Attempt): TaskPatch | undefined {
    if (record.lease?.token !== token) return undefined;
    const ttlMs = extendedTtlMs(record, this.#options.leaseMs, this.#options.now());
    return ttlMs === undefined ? undefined : { ttlMs };
  }

  /** Aborts what may not be relied on any more, and comes back when the next lease would lapse. */
  #giveUpLapsed(): void {
    if (isExclusive(this.#options.store)) return;
    let nextMs = Infinity;
    for (const attempt of this.#attempts.leased()) {
      const remainingMs = leftMs(attempt.leasedSince, this.#options.leaseMs, this.#options);
      if (remainingMs <= 0) attempt.lapse();
      else nextMs = Math.min(nextMs, remainingMs);
    }
    this.#cancelLapse();
    if (nextMs < Infinity && !this.#stopped)
      this.#cancelLapse = this.#options.timers.later(() => this.#giveUpLapsed(), Math.ceil(nextMs));
  }
}
