import type { ClaimOptions, Lease, TaskPatch, TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { ReferenceTaskStore, type Entry } from "../support/reference-task-store.ts";

export const claimableMutants: readonly Mutant[] = [
  {
    fault: "a store has claim() without renew()",
    caughtBy: ["claim.comes-with-renew"],
    Store: class extends ReferenceTaskStore {
      constructor(...args: ConstructorParameters<typeof ReferenceTaskStore>) {
        super(...args);
        Object.defineProperty(this, "renew", { value: undefined });
      }
    },
  },
  {
    fault: "claim() takes no task that waits for input",
    caughtBy: ["claim.takes-the-free"],
    Store: class extends ReferenceTaskStore {
      override isWanted(record: TaskRecord, options: ClaimOptions): boolean {
        return record.status !== "input_required" && super.isWanted(record, options);
      }
    },
  },
  {
    fault: "claim() takes tasks that failed",
    caughtBy: ["claim.spares-the-finished"],
    Store: class extends ReferenceTaskStore {
      override isWanted(record: TaskRecord, options: ClaimOptions): boolean {
        return record.status === "failed" || super.isWanted(record, options);
      }
    },
  },
  {
    fault: "claim() finds every cancelled task, the finished ones too",
    caughtBy: ["claim.spares-the-finished"],
    Store: class extends ReferenceTaskStore {
      override isWanted(record: TaskRecord, options: ClaimOptions): boolean {
        return record.cancelRequestedAt !== undefined || super.isWanted(record, options);
      }
    },
  },
  {
    fault: "claim() takes records of every kind",
    caughtBy: ["claim.spares-other-kinds"],
    Store: class extends ReferenceTaskStore {
      override isWanted({ kind: _kind, ...record }: TaskRecord, options: ClaimOptions): boolean {
        return super.isWanted(record, options);
      }
    },
  },
  {
    fault: "claim() takes expired tasks that no sweep has deleted yet",
    caughtBy: ["claim.spares-the-expired"],
    Store: class extends ReferenceTaskStore {
      override candidates(options: ClaimOptions): Entry[] {
        return [...this.backing.entries.values()].filter(
          ({ record }) => options.taskIds?.includes(record.taskId) ?? true,
        );
      }
    },
  },
  {
    fault: "leases lapse a twentieth early",
    caughtBy: ["claim.spares-live-leases"],
    Store: class extends ReferenceTaskStore {
      override setDeadline(taskId: string, durationMs: number | undefined): void {
        super.setDeadline(taskId, durationMs && durationMs * 0.95);
      }
    },
  },
  {
    fault: "a lease as old as its duration is live",
    caughtBy: ["claim.takes-lapsed-leases"],
    Store: class extends ReferenceTaskStore {
      override isFree({ record: { taskId } }: Entry): boolean {
        return this.backing.nowMs > (this.backing.leaseEndsAtMs.get(taskId) ?? -Infinity);
      }
    },
  },
  {
    fault: "a patch with the lease that is there already does not move its end",
    caughtBy: ["claim.patch-sets-the-deadline"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const endsAtMs = this.backing.leaseEndsAtMs.get(taskId);
        const same =
          patch.lease !== undefined && patch.lease.token === this.find(taskId)?.record.lease?.token;
        const version = await super.update(taskId, patch, expectedVersion);
        if (same && endsAtMs !== undefined) this.backing.leaseEndsAtMs.set(taskId, endsAtMs);
        return version;
      }
    },
  },
  {
    fault: "every update() puts off the end of a lease",
    caughtBy: ["claim.other-patches-keep-the-deadline"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const version = await super.update(taskId, patch, expectedVersion);
        this.setDeadline(taskId, this.find(taskId)?.record.lease?.durationMs);
        return version;
      }
    },
  },
  {
    fault: "deleting the lease of a create() leaves its deadline",
    caughtBy: ["claim.deleted-lease-is-free"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const endsAtMs = this.backing.leaseEndsAtMs.get(taskId);
        const created = this.find(taskId)?.record.lease?.owner === "creator" && patch.lease === undefined;
        const version = await super.update(taskId, patch, expectedVersion);
        if (created && endsAtMs !== undefined) this.backing.leaseEndsAtMs.set(taskId, endsAtMs);
        return version;
      }
    },
  },
  {
    fault: "a claim holds a task for as long as the lease before it did",
    caughtBy: ["claim.sets-the-deadline"],
    Store: class extends ReferenceTaskStore {
      override take(entry: Entry, owner: string, leaseMs: number): TaskRecord {
        const before = entry.record.lease?.durationMs ?? leaseMs;
        const record = super.take(entry, owner, leaseMs);
        this.setDeadline(record.taskId, before);
        return record;
      }
    },
  },
  {
    fault: "a new record under an expired id has the deadline of the old lease",
    caughtBy: ["claim.reborn-is-free"],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        const endsAtMs = this.backing.leaseEndsAtMs.get(record.taskId);
        await super.create(record);
        if (endsAtMs !== undefined) this.backing.leaseEndsAtMs.set(record.taskId, endsAtMs);
      }
    },
  },
];

export const claimMutants: readonly Mutant[] = [
  {
    fault: "claim() counts an attempt",
    caughtBy: ["claim.writes-the-lease"],
    Store: class extends ReferenceTaskStore {
      override take(entry: Entry, owner: string, leaseMs: number): TaskRecord {
        const { attempt } = entry.record;
        return super.take({ ...entry, record: { ...entry.record, attempt: attempt + 1 } }, owner, leaseMs);
      }
    },
  },
  {
    fault: "claim() does not count as a version",
    caughtBy: ["claim.writes-the-lease", "race.claims-follow-writes", "renew.lost-ones-spare-others"],
    Store: class extends ReferenceTaskStore {
      override take(entry: Entry, owner: string, leaseMs: number): TaskRecord {
        const { version } = entry.record;
        return super.take({ ...entry, record: { ...entry.record, version: version - 1 } }, owner, leaseMs);
      }
    },
  },
  {
    fault: "claim() resolves to records without what makes them large",
    caughtBy: ["claim.resolves-to-the-records"],
    Store: class extends ReferenceTaskStore {
      override given(record: TaskRecord): TaskRecord {
        const { work: _large, ...small } = super.given(record);
        return small;
      }
    },
  },
  {
    fault: "a token is the owner and the time",
    caughtBy: ["claim.tokens-are-fresh", "renew.old-token-is-lost"],
    Store: class extends ReferenceTaskStore {
      override newLease(_record: TaskRecord, owner: string, leaseMs: number): Lease {
        return { owner, token: `${owner} ${this.backing.nowMs}`, durationMs: leaseMs };
      }
    },
  },
  {
    fault: "all tasks of one claim have one token",
    caughtBy: ["claim.tokens-are-fresh"],
    Store: class extends ReferenceTaskStore {
      #token = "";
      override async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
        this.#token = crypto.randomUUID();
        return super.claim(owner, leaseMs, options);
      }
      override newLease(_record: TaskRecord, owner: string, leaseMs: number): Lease {
        return { owner, token: this.#token, durationMs: leaseMs };
      }
    },
  },
  {
    fault: "claim() hands out the stored object",
    caughtBy: ["claim.gives-values"],
    Store: class extends ReferenceTaskStore {
      override given(record: TaskRecord): TaskRecord {
        return record;
      }
    },
  },
  {
    fault: "claim() has no limit",
    caughtBy: ["claim.respects-the-limit"],
    Store: class extends ReferenceTaskStore {
      override isFull(): boolean {
        return false;
      }
    },
  },
  {
    fault: "claim() counts its limit before it looks whether a task may be claimed",
    caughtBy: ["claim.respects-the-limit"],
    Store: class extends ReferenceTaskStore {
      override candidates(options: ClaimOptions): Entry[] {
        const entries = super.candidates(options);
        const few = options.taskIds === undefined && options.limit > 1;
        return few ? entries.slice(0, options.limit) : entries;
      }
    },
  },
  {
    fault: "claim() takes a task without work whatever the tools",
    caughtBy: ["claim.keeps-to-the-tools"],
    Store: class extends ReferenceTaskStore {
      override isWanted(record: TaskRecord, options: ClaimOptions): boolean {
        const { tools: _tools, ...others } = options;
        return super.isWanted(record, record.work === undefined ? others : options);
      }
    },
  },
  {
    fault: "claim() takes an empty list of tools for no list",
    caughtBy: ["claim.keeps-to-the-tools"],
    Store: class extends ReferenceTaskStore {
      override isWanted(record: TaskRecord, options: ClaimOptions): boolean {
        const { tools, ...others } = options;
        return super.isWanted(record, tools?.length === 0 ? others : options);
      }
    },
  },
  {
    fault: "a task that was cancelled after its creation is claimed for its tool alone",
    caughtBy: ["claim.cancelled-needs-no-tool"],
    Store: class extends ReferenceTaskStore {
      override isWanted(record: TaskRecord, options: ClaimOptions): boolean {
        const { cancelRequestedAt: _late, ...before } = record;
        return super.isWanted(record.version > 1_234_567 ? before : record, options);
      }
    },
  },
  {
    fault: "a cancelled task is claimed from under its owner",
    caughtBy: ["claim.cancelled-needs-no-tool"],
    Store: class extends ReferenceTaskStore {
      override isFree(entry: Entry): boolean {
        return entry.record.cancelRequestedAt !== undefined || super.isFree(entry);
      }
    },
  },
  {
    fault: "claim() with an id twice gives the task twice",
    caughtBy: ["claim.keeps-to-the-ids"],
    Store: class extends ReferenceTaskStore {
      override async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
        const claimed = await super.claim(owner, leaseMs, options);
        const { taskIds } = options;
        if (taskIds === undefined) return claimed;
        return taskIds.flatMap((taskId) => claimed.filter((record) => record.taskId === taskId));
      }
    },
  },
  {
    fault: "claim() takes an empty list of ids for no list",
    caughtBy: ["claim.keeps-to-the-ids"],
    Store: class extends ReferenceTaskStore {
      override candidates(options: ClaimOptions): Entry[] {
        const { taskIds, ...others } = options;
        return super.candidates(taskIds?.length === 0 ? others : options);
      }
    },
  },
  {
    fault: "claim() takes a limit of 0",
    caughtBy: ["claim.bad-arguments-refused"],
    Store: class extends ReferenceTaskStore {
      override assertClaim(owner: string, leaseMs: number, limit: number): void {
        super.assertClaim(owner, leaseMs, limit === 0 ? 1 : limit);
      }
    },
  },
  {
    fault: "claim() takes an owner without a name",
    caughtBy: ["claim.bad-arguments-refused"],
    Store: class extends ReferenceTaskStore {
      override assertClaim(owner: string, leaseMs: number, limit: number): void {
        super.assertClaim(owner || "nobody", leaseMs, limit);
      }
    },
  },
];
