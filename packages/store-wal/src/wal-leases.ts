import { holdsLease, isTerminal, LeaseDeadlines, newLease } from "@longjobs/core";
import type { ClaimOptions, HeldLease, Lease, TaskPatch, TaskRecord } from "@longjobs/core";

/** What the leases need of their store. */
export interface WalLeasesParts {
  readonly now: () => number;
  /** The task as it is; `undefined` when it is unknown, expired or damaged. */
  get(taskId: string): Promise<TaskRecord | undefined>;
  /** Writes the lease if the task may still be claimed when its turn has come. */
  claim(taskId: string, lease: Lease, options: ClaimOptions): Promise<TaskRecord | undefined>;
}

/**
 * Who may take which task (C25 to C32). The deadlines live in memory alone: they end with the opening, and so does
 * every lease.
 */
export class WalLeases {
  readonly #parts: WalLeasesParts;
  readonly #deadlines = new LeaseDeadlines();
  /** Claims under way, by task: a renewal looks only when they have settled. */
  readonly #claiming = new Map<string, Promise<unknown>>();

  constructor(parts: WalLeasesParts) {
    this.#parts = parts;
  }

  /** For each open task that an opening finds. */
  reopened(taskId: string): void {
    this.#deadlines.reopened({ taskId, status: "working" });
  }

  created(record: TaskRecord): void {
    this.#deadlines.created(record, this.#parts.now());
  }

  updated(taskId: string, isOpen: boolean, patch: TaskPatch): void {
    const status = isOpen ? "working" : "completed";
    const { lease } = patch;
    // Without a lease there is no deadline to count from now.
    if (lease === undefined) this.#deadlines.updated({ taskId, status }, patch, 0);
    else this.#deadlines.updated({ taskId, status, lease }, patch, this.#parts.now());
  }

  deleted(taskId: string): void {
    this.#deadlines.deleted(taskId);
  }

  hasLapsed(taskId: string): boolean {
    return !this.#deadlines.lapsed(this.#parts.now(), [taskId]).next().done;
  }

  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    const claimed: TaskRecord[] = [];
    const candidates = this.#deadlines.lapsed(this.#parts.now(), options.taskIds);
    // As many at once as are still wanted: they share one flush.
    for (;;) {
      const tries = [...take(candidates, options.limit - claimed.length)];
      if (tries.length === 0) return claimed;
      const found = await Promise.all(
        tries.map((taskId) => this.#claim(taskId, newLease(owner, leaseMs), options)),
      );
      claimed.push(...found.filter((record) => record !== undefined));
    }
  }

  async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
    const lost = await Promise.all(
      leases.map(async ({ taskId, token }) => {
        // Nobody waits on a claim that fails: then the lease is as it was.
        await this.#claiming.get(taskId)?.catch(() => undefined);
        const record = await this.#parts.get(taskId);
        if (record === undefined || isTerminal(record.status) || !holdsLease(record, token)) return taskId;
        this.#deadlines.renewed(taskId, leaseMs, this.#parts.now());
        return undefined;
      }),
    );
    return lost.filter((taskId) => taskId !== undefined);
  }

  async #claim(taskId: string, lease: Lease, options: ClaimOptions): Promise<TaskRecord | undefined> {
    const claiming = this.#parts.claim(taskId, lease, options);
    this.#claiming.set(taskId, claiming);
    try {
      return await claiming;
    } finally {
      if (this.#claiming.get(taskId) === claiming) this.#claiming.delete(taskId);
    }
  }
}

function* take<Value>(values: Iterator<Value>, count: number): Generator<Value> {
  for (let left = count; left > 0; left -= 1) {
    const next = values.next();
    if (next.done === true) return;
    yield next.value;
  }
}
