import { storeErrors, type HeldLease, type TaskPatch, type TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { Backing, ReferenceTaskStore, type Entry, type Opening } from "../support/reference-task-store.ts";

export const sharedMutants: readonly Mutant[] = [
  {
    fault: "a second handle learns of a record at its second look",
    caughtBy: ["create.seen-by-second-handle"],
    Store: class extends ReferenceTaskStore {
      readonly #known = new Set<string>();
      override find(taskId: string): Entry | undefined {
        this.#known.add(taskId);
        return super.find(taskId);
      }
      override async get(taskId: string): Promise<TaskRecord | undefined> {
        const blind = this.opening === "second" && !this.closed && !this.#known.has(taskId);
        this.#known.add(taskId);
        return blind ? undefined : super.get(taskId);
      }
    },
  },
  {
    fault:
      "a second handle resolves a create() whose version is lower than that of the record which has the id",
    caughtBy: ["create.taken-for-second-handle"],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        const taken = this.opening === "second" && !this.closed ? this.live(record.taskId) : undefined;
        if (taken !== undefined && record.version < taken.record.version) return;
        await super.create(record);
      }
    },
  },
  {
    fault: "a second handle keeps the checkpoint it has read",
    caughtBy: ["update.seen-by-second-handle"],
    Store: class extends ReferenceTaskStore {
      readonly #checkpoints = new Map<string, TaskRecord["checkpoint"]>();
      override decode(record: TaskRecord): TaskRecord {
        const read = super.decode(record);
        if (this.opening !== "second" || read.checkpoint === undefined) return read;
        const checkpoint = this.#checkpoints.get(read.taskId) ?? read.checkpoint;
        this.#checkpoints.set(read.taskId, checkpoint);
        return { ...read, checkpoint };
      }
    },
  },
  {
    fault: "a second handle compares the version of a cancellation with the one it has read",
    caughtBy: ["update.stale-for-second-handle"],
    Store: class extends ReferenceTaskStore {
      #read = NaN;
      override decode(record: TaskRecord): TaskRecord {
        if (this.opening === "second") this.#read = record.version;
        return super.decode(record);
      }
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const careless = patch.cancelRequestedAt !== undefined && this.#read === expectedVersion;
        const version = this.find(taskId)?.record.version ?? expectedVersion;
        return super.update(taskId, patch, careless ? version : expectedVersion);
      }
    },
  },
  {
    fault: "a second handle goes on showing a task that it has read before it expired",
    caughtBy: ["get.expired-for-second-handle"],
    Store: class extends ReferenceTaskStore {
      readonly #read = new Map<string, TaskRecord>();
      override async get(taskId: string): Promise<TaskRecord | undefined> {
        const record = await super.get(taskId);
        if (this.opening === "second" && record !== undefined) this.#read.set(taskId, record);
        return record ?? this.#read.get(taskId);
      }
    },
  },
  {
    fault: "a second handle counts what the first has swept",
    caughtBy: ["sweep.seen-by-second-handle"],
    Store: class extends ReferenceTaskStore {
      override async sweep(): Promise<number> {
        const swept = await super.sweep();
        if (this.opening === "second") return swept + Number(this.backing.notes.get("swept") ?? 0);
        this.backing.notes.set("swept", swept);
        return swept;
      }
    },
  },
  {
    fault: "close() of one handle closes the backing data for all",
    caughtBy: ["close.leaves-second-handle"],
    Store: class extends ReferenceTaskStore {
      constructor(backing: Backing, opening: Opening) {
        super(backing, opening);
        backing.notes.delete("closed");
      }
      override async close(): Promise<void> {
        this.backing.notes.set("closed", true);
        await super.close();
      }
      override assertOpen(): void {
        if (this.backing.notes.has("closed")) throw storeErrors.storeClosed();
      }
    },
  },
];

export const sharedLeaseMutants: readonly Mutant[] = [
  {
    fault: "a second handle goes by the deadline it has seen in a lone task",
    caughtBy: ["claim.seen-by-second-handle"],
    Store: class extends ReferenceTaskStore {
      override isFree(entry: Entry): boolean {
        const lone = this.opening === "second" && this.backing.entries.size === 1;
        return (lone && entry.record.lease?.owner === "claimer") || super.isFree(entry);
      }
    },
  },
  {
    fault: "renew() moves the deadline for its own handle",
    caughtBy: ["renew.seen-by-second-handle"],
    Store: class extends ReferenceTaskStore {
      override renewOne(lease: HeldLease, leaseMs: number): boolean {
        const endsAtMs = this.backing.leaseEndsAtMs.get(lease.taskId);
        const renewed = super.renewOne(lease, leaseMs);
        if (this.opening === "second" && endsAtMs !== undefined)
          this.backing.leaseEndsAtMs.set(lease.taskId, endsAtMs);
        return renewed;
      }
    },
  },
];

export const watchMutants: readonly Mutant[] = [
  {
    fault: "a watch does not hear of claims",
    caughtBy: ["watch.hears-claims"],
    Store: class extends ReferenceTaskStore {
      override notify(taskId: string): void {
        if (this.find(taskId)?.record.lease === undefined) super.notify(taskId);
      }
    },
  },
  {
    fault: "a watch hears of the changes of its own handle",
    caughtBy: ["watch.hears-second-handle"],
    Store: class extends ReferenceTaskStore {
      override notify(taskId: string): void {
        if (this.opening !== "second") super.notify(taskId);
      }
    },
  },
  {
    fault: "a watch hears one change",
    caughtBy: ["watch.hears-changes"],
    Store: class extends ReferenceTaskStore {
      override async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
        let heard = false;
        return super.watch(taskId, () => {
          if (!heard) onChange();
          heard = true;
        });
      }
    },
  },
  {
    fault: "listeners are called before the change can be read",
    caughtBy: ["watch.change-can-be-read"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        super.notify(entry.record.taskId);
        super.put(entry);
      }
      override notify(): void {}
    },
  },
  {
    fault: "listeners are called for every task",
    caughtBy: ["watch.ignores-other-tasks"],
    Store: class extends ReferenceTaskStore {
      override notify(): void {
        for (const taskId of this.backing.entries.keys()) super.notify(taskId);
      }
    },
  },
  {
    fault: "a watch does not end",
    caughtBy: ["watch.ends"],
    Store: class extends ReferenceTaskStore {
      override async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
        await super.watch(taskId, onChange);
        return () => Promise.resolve();
      }
    },
  },
  {
    fault: "ending a watch again ends another",
    caughtBy: ["watch.ends-twice"],
    Store: class extends ReferenceTaskStore {
      readonly #ends: (() => Promise<void>)[] = [];
      override async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
        const end = await super.watch(taskId, onChange);
        this.#ends.push(end);
        let ended = false;
        return async () => {
          const next = ended ? this.#ends.at(-1) : end;
          ended = true;
          await next?.();
        };
      }
    },
  },
  {
    fault: "ending a watch again rejects",
    caughtBy: ["watch.ends-twice"],
    Store: class extends ReferenceTaskStore {
      override async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
        const end = await super.watch(taskId, onChange);
        let ended = false;
        return async () => {
          if (ended) throw new Error("ended before");
          ended = true;
          await end();
        };
      }
    },
  },
  {
    fault: "listeners are kept by function",
    caughtBy: ["watch.same-listener-twice"],
    Store: class extends ReferenceTaskStore {
      readonly #ends = new Map<() => void, () => Promise<void>>();
      override async watch(taskId: string, onChange: () => void): Promise<() => Promise<void>> {
        const end = this.#ends.get(onChange) ?? (await super.watch(taskId, onChange));
        this.#ends.set(onChange, end);
        return end;
      }
    },
  },
];
