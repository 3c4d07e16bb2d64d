import { isTerminal, type HeldLease } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { ReferenceTaskStore, type Entry } from "../support/reference-task-store.ts";

export const renewMutants: readonly Mutant[] = [
  {
    fault: "renew() of one lease moves no deadline while the lease is live",
    caughtBy: ["renew.moves-the-deadline"],
    Store: class extends ReferenceTaskStore {
      #alone = false;
      override async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
        this.#alone = leases.length === 1 && this.backing.handles === 1 && leaseMs === 240_000;
        return super.renew(leases, leaseMs);
      }
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const endsAtMs = this.backing.leaseEndsAtMs.get(lease.taskId) ?? 0;
        const renewed = super.renewOne(lease, leaseMs);
        if (this.#alone && endsAtMs > this.backing.nowMs)
          this.backing.leaseEndsAtMs.set(lease.taskId, endsAtMs);
        return renewed;
      }
    },
  },
  {
    fault: "renew() only ever puts off the end",
    caughtBy: ["renew.may-shorten"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const endsAtMs = this.backing.leaseEndsAtMs.get(lease.taskId) ?? 0;
        const renewed = super.renewOne(lease, leaseMs);
        if (renewed && endsAtMs > this.backing.nowMs + leaseMs)
          this.backing.leaseEndsAtMs.set(lease.taskId, endsAtMs);
        return renewed;
      }
    },
  },
  {
    fault: "renew() finds tasks alone, as claim() does",
    caughtBy: ["renew.other-kinds-too"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        return this.live(lease.taskId)?.record.kind === undefined && super.renewOne(lease, leaseMs);
      }
    },
  },
  {
    fault: "renew() writes the new duration into the record",
    caughtBy: ["renew.changes-no-record"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const entry = this.live(lease.taskId);
        const renewed = super.renewOne(lease, leaseMs);
        if (renewed && entry?.record.lease !== undefined) {
          const written = { ...entry.record.lease, durationMs: leaseMs };
          this.put({ ...entry, record: { ...entry.record, lease: written } });
        }
        return renewed;
      }
    },
  },
  {
    fault: "renew() adds one to the version",
    caughtBy: ["renew.changes-no-record"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const entry = this.live(lease.taskId);
        const renewed = super.renewOne(lease, leaseMs);
        if (renewed && entry !== undefined) this.put({ ...entry, record: this.apply(entry.record, {}) });
        return renewed;
      }
    },
  },
  {
    fault: "a lease that has lapsed is lost",
    caughtBy: ["renew.revives-the-lapsed"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const entry = this.find(lease.taskId);
        return (entry === undefined || !this.isFree(entry)) && super.renewOne(lease, leaseMs);
      }
    },
  },
  {
    fault: "renew() does not compare tokens",
    caughtBy: ["renew.wrong-token-is-lost", "renew.old-token-is-lost"],
    Store: class extends ReferenceTaskStore {
      override renewOne({ taskId, token }: HeldLease, leaseMs: number): boolean {
        return super.renewOne({ taskId, token: this.find(taskId)?.record.lease?.token ?? token }, leaseMs);
      }
    },
  },
  {
    fault: "renew() with a wrong token says so, and moves the deadline",
    caughtBy: ["renew.wrong-token-is-lost"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const renewed = super.renewOne(lease, leaseMs);
        if (!renewed && this.find(lease.taskId)?.record.lease !== undefined)
          this.setDeadline(lease.taskId, leaseMs);
        return renewed;
      }
    },
  },
  {
    fault: "renew() takes every token that the task ever had",
    caughtBy: ["renew.old-token-is-lost"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        super.put(entry);
        const { taskId, lease } = entry.record;
        if (lease !== undefined) this.backing.notes.set(`${taskId} ${lease.token}`, true);
      }
      override renewOne({ taskId, token }: HeldLease, leaseMs: number): boolean {
        const known = this.backing.notes.has(`${taskId} ${token}`);
        const current = this.find(taskId)?.record.lease?.token ?? token;
        return super.renewOne({ taskId, token: known ? current : token }, leaseMs);
      }
    },
  },
  {
    fault: "renew() of a finished task whose record has a lease succeeds",
    caughtBy: ["renew.finished-is-lost"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const record = this.live(lease.taskId)?.record;
        const held = record?.lease?.token === lease.token && isTerminal(record.status);
        return held || super.renewOne(lease, leaseMs);
      }
    },
  },
  {
    fault: "renew() of one unknown id says nothing",
    caughtBy: ["renew.unknown-is-lost"],
    Store: class extends ReferenceTaskStore {
      override async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
        const lost = await super.renew(leases, leaseMs);
        return leases.length === 1 ? lost.filter((taskId) => this.find(taskId) !== undefined) : lost;
      }
    },
  },
  {
    fault: "renew() finds expired tasks",
    caughtBy: ["renew.expired-is-lost"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const entry = this.find(lease.taskId);
        const expired = entry !== undefined && this.isExpired(entry);
        return (expired && entry.record.lease?.token === lease.token) || super.renewOne(lease, leaseMs);
      }
    },
  },
  {
    fault: "renew() stops at the first lease that is lost",
    caughtBy: ["renew.lost-ones-spare-others"],
    Store: class extends ReferenceTaskStore {
      override async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
        const last = leases.findIndex(
          ({ taskId, token }) => this.find(taskId)?.record.lease?.token !== token,
        );
        if (leases.length < 3 || last === -1) return super.renew(leases, leaseMs);
        await super.renew(leases.slice(0, last), leaseMs);
        return leases.filter(({ taskId }) => !this.find(taskId)?.record.lease).map(({ taskId }) => taskId);
      }
    },
  },
  {
    fault: "renew() takes a duration of 0",
    caughtBy: ["renew.bad-arguments-refused"],
    Store: class extends ReferenceTaskStore {
      override async renew(leases: readonly HeldLease[], leaseMs: number): Promise<string[]> {
        return super.renew(leases, leaseMs === 0 ? 1 : leaseMs);
      }
    },
  },
];
