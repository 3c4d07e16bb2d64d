import { isRefusal, type Attempt } from "./attempt.ts";
import type { HeldAttempts } from "./held-attempts.ts";
import { instant, leftMs, type Instant } from "./lease-clock.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { extendedTtlMs } from "./task-retention.ts";
import type { TaskRecord } from "./task-record.ts";
import { canLease, canWatch, type LeasingTaskStore, type TaskPatch } from "./task-store.ts";
import type { TaskWriter } from "./task-writer.ts";
import { later } from "./timers.ts";

/**
 * A store that watches is looked at all the same, every so many beats: a hint that was lost costs two leases at most. Reading
 * each running task at every beat would cost more than all leases together.
 */
const beatsPerLook = 6;

/**
 * Keeps the leases of one engine: every third of a lease all of them are renewed, in one call where the store can renew.
 * A lease that could not be renewed is given up here, before anybody else may take it: when its duration has passed since the
 * last good renewal was sent, by either clock, the attempt's signal is aborted with `lease_lost`.
 */
export class Heartbeat {
  readonly #options: ResolvedLifecycleOptions;
  readonly #writer: TaskWriter;
  readonly #attempts: HeldAttempts;
  #cancelLapse: () => void = () => undefined;
  #beats = 0;
  #renewing: Promise<void> | undefined;
  #failedAt: Instant | undefined;

  constructor(options: ResolvedLifecycleOptions, writer: TaskWriter, attempts: HeldAttempts) {
    this.#options = options;
    this.#writer = writer;
    this.#attempts = attempts;
  }

  /** True for one lease after a failure of the store: whoever is behind it then may be slow, not dead. */
  get storeIsDoubtful(): boolean {
    return this.#failedAt !== undefined && leftMs(this.#failedAt, this.#options.leaseMs, this.#options) > 0;
  }

  stop(): void {
    this.#cancelLapse();
  }

  /** Says that the store has failed, so that nobody's lease is taken for dead too soon. */
  noteFailure(): void {
    this.#failedAt = instant(this.#options);
  }

  /** One beat: gives up what has lapsed, renews the rest, and keeps running tasks from expiring. Never rejects. */
  async beat(): Promise<void> {
    this.#giveUpLapsed();
    // A renewal that hangs is waited for by nobody: the lapse of its leases goes on.
    if (this.#renewing !== undefined) return;
    this.#renewing = this.#renewAll();
    try {
      await this.#renewing;
    } finally {
      this.#renewing = undefined;
    }
    this.#giveUpLapsed();
  }

  async #renewAll(): Promise<void> {
    const { store } = this.#options;
    const held = this.#attempts.leased();
    this.#beats += 1;
    if (canLease(store)) await this.#renewTogether(store, held);
    else await Promise.all(held.map((attempt) => this.#renewByWrite(attempt)));
    const looks = canLease(store) && (!canWatch(store) || this.#beats % beatsPerLook === 0);
    await Promise.all(held.map((attempt) => this.#tend(attempt, looks)));
  }

  async #renewTogether(store: LeasingTaskStore, held: readonly Attempt[]): Promise<void> {
    if (held.length === 0) return;
    const sentAt = instant(this.#options);
    try {
      const leases = held.map(({ taskId, token }) => ({ taskId, token }));
      const lost = new Set(await store.renew(leases, this.#options.leaseMs));
      for (const attempt of held) if (!lost.has(attempt.taskId)) attempt.renewed(sentAt);
      await Promise.all(held.filter(({ taskId }) => lost.has(taskId)).map((attempt) => attempt.lose()));
    } catch (error) {
      this.noteFailure();
      this.#options.reportError(error);
    }
  }

  /** Without `renew` the heartbeat is an ordinary write: it changes the version, which is the sign of life. */
  async #renewByWrite(attempt: Attempt): Promise<void> {
    const sentAt = instant(this.#options);
    try {
      await this.#writer.write(attempt.taskId, ({ lease }) =>
        lease?.token === attempt.token ? { lease } : undefined,
      );
      if (!attempt.ended) attempt.renewed(sentAt);
    } catch (error) {
      if (isRefusal(error)) return attempt.look();
      this.noteFailure();
      this.#options.reportError(error);
    }
  }

  /** The time to live of a running task moves on; the record that was seen last says when. */
  async #tend(attempt: Attempt, looks: boolean): Promise<void> {
    if (attempt.ended) return;
    if (looks) await attempt.look();
    if (attempt.ended || this.#extension(attempt.lastSeen, attempt) === undefined) return;
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
    let nextMs = Infinity;
    for (const attempt of this.#attempts.leased()) {
      const remainingMs = leftMs(attempt.leasedSince, this.#options.leaseMs, this.#options);
      if (remainingMs <= 0) attempt.lapse();
      else nextMs = Math.min(nextMs, remainingMs);
    }
    this.#cancelLapse();
    if (nextMs < Infinity) this.#cancelLapse = later(() => this.#giveUpLapsed(), Math.ceil(nextMs));
  }
}
