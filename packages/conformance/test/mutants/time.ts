import { storeErrors, type TaskPatch, type TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { ReferenceTaskStore, type Entry } from "../support/reference-task-store.ts";

const hour = 60 * 60 * 1000;

export const timeMutants: readonly Mutant[] = [
  {
    fault: "a task of the age of its ttlMs still lives",
    caughtBy: ["time.expires-at-ttl"],
    Store: class extends ReferenceTaskStore {
      override isExpired(entry: Entry): boolean {
        return this.backing.nowMs > this.endsAtMs(entry);
      }
    },
  },
  {
    fault: "tasks expire a twentieth early",
    caughtBy: ["time.lives-until-ttl"],
    Store: class extends ReferenceTaskStore {
      override endsAtMs(entry: Entry): number {
        return super.endsAtMs(entry) - (entry.record.ttlMs ?? 0) * 0.05;
      }
    },
  },
  {
    fault: "a ttlMs of null means a year",
    caughtBy: ["time.null-never-expires"],
    Store: class extends ReferenceTaskStore {
      override endsAtMs(entry: Entry): number {
        return Math.min(super.endsAtMs(entry), entry.bornAtMs + (entry.record.ttlMs ?? 365 * 24 * hour));
      }
    },
  },
  {
    fault: "expiry is a timer, and a long one overflows",
    caughtBy: ["time.long-ttl-is-long"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        super.put(entry);
        if ((entry.record.ttlMs ?? 0) > 2 ** 31 - 1) {
          setTimeout(() => this.backing.entries.delete(entry.record.taskId), 1);
        }
      }
    },
  },
  {
    fault: "the age counts from createdAt when that is far from now",
    caughtBy: ["time.counts-on-the-stores-clock"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        const createdAtMs = Date.parse(entry.record.createdAt);
        const far = Math.abs(createdAtMs - entry.bornAtMs) > 12 * hour;
        super.put(far ? { ...entry, bornAtMs: createdAtMs } : entry);
      }
    },
  },
  {
    fault: "reading a task puts off its end",
    caughtBy: ["time.reads-do-not-extend"],
    Store: class extends ReferenceTaskStore {
      override async get(taskId: string): Promise<TaskRecord | undefined> {
        const record = await super.get(taskId);
        const entry = this.live(taskId);
        if (entry !== undefined) entry.bornAtMs = this.backing.nowMs;
        return record;
      }
    },
  },
  {
    fault: "any update puts off the end",
    caughtBy: ["time.updates-do-not-extend"],
    Store: rebirthOnUpdate((patch) => patch.ttlMs === undefined),
  },
  {
    fault: "a ttlMs given by an update counts from the update",
    caughtBy: ["time.ttl-update-keeps-the-birth"],
    Store: rebirthOnUpdate((patch) => patch.ttlMs !== undefined),
  },
  {
    fault: "get() goes by the ttlMs at birth when an update made it longer",
    caughtBy: ["time.longer-ttl-moves-the-end"],
    Store: class extends ReferenceTaskStore {
      readonly #firstEnds = new Map<string, number>();
      override put(entry: Entry): void {
        const { taskId } = entry.record;
        if (this.find(taskId) === undefined) this.#firstEnds.set(taskId, this.endsAtMs(entry));
        super.put(entry);
      }
      override async get(taskId: string): Promise<TaskRecord | undefined> {
        const record = await super.get(taskId);
        const updated = record?.version === 1_234_568;
        return updated && this.backing.nowMs >= (this.#firstEnds.get(taskId) ?? Infinity)
          ? undefined
          : record;
      }
    },
  },
  {
    fault: "a new record under an expired id keeps the old age",
    caughtBy: ["time.rebirth-has-a-new-age"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        super.put({ ...entry, bornAtMs: this.find(entry.record.taskId)?.bornAtMs ?? entry.bornAtMs });
      }
    },
  },
  {
    fault: "a new record under a swept id keeps the old age",
    caughtBy: ["time.rebirth-after-sweep"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        const { taskId } = entry.record;
        const sweptBirth = this.find(taskId) === undefined ? this.backing.notes.get(taskId) : undefined;
        const bornAtMs = typeof sweptBirth === "number" ? sweptBirth : entry.bornAtMs;
        this.backing.notes.set(taskId, bornAtMs);
        super.put({ ...entry, bornAtMs });
      }
    },
  },
  {
    fault: "the version of a new record goes on from the old one",
    caughtBy: ["time.rebirth-has-its-own-version"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        const { record } = entry;
        const version = Math.max(record.version, this.find(record.taskId)?.record.version ?? 0);
        super.put({ ...entry, record: { ...record, version } });
      }
    },
  },
];

export const expiredMutants: readonly Mutant[] = [
  {
    fault: "cancelled tasks never expire",
    caughtBy: ["get.expired-is-undefined"],
    Store: class extends ReferenceTaskStore {
      override isExpired(entry: Entry): boolean {
        return entry.record.status !== "cancelled" && super.isExpired(entry);
      }
    },
  },
  {
    fault: "update() finds expired tasks",
    caughtBy: ["update.expired-rejects"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const entry = this.closed ? undefined : this.find(taskId);
        if (entry === undefined || !this.isExpired(entry))
          return super.update(taskId, patch, expectedVersion);
        this.put({ ...entry, record: this.apply(entry.record, patch) });
        return expectedVersion + 1;
      }
    },
  },
  {
    fault: "fields of an expired record show through the new one",
    caughtBy: ["create.expired-id-is-free"],
    Store: class extends ReferenceTaskStore {
      override encode(record: TaskRecord): TaskRecord {
        return { ...this.find(record.taskId)?.record, ...super.encode(record) };
      }
    },
  },
  {
    fault: "an expired id is taken until it is swept",
    caughtBy: [
      "time.rebirth-has-a-new-age",
      "time.rebirth-has-its-own-version",
      "create.expired-id-is-free",
      "race.one-creator-after-expiry",
      "durable.rebirth-survives",
      "claim.reborn-is-free",
    ],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        if (!this.closed && this.find(record.taskId)) throw storeErrors.taskExists(record.taskId);
        await super.create(record);
      }
    },
  },
];

export const sweepMutants: readonly Mutant[] = [
  {
    fault: "sweep() counts to two",
    caughtBy: ["sweep.resolves-to-count"],
    Store: class extends ReferenceTaskStore {
      override async sweep(): Promise<number> {
        return Math.min(2, await super.sweep());
      }
    },
  },
  {
    fault: "sweep() counts what it swept before at the same moment",
    caughtBy: ["sweep.second-finds-nothing"],
    Store: class extends ReferenceTaskStore {
      #last = { atMs: 0, count: 0 };
      override async sweep(): Promise<number> {
        const atMs = this.backing.nowMs;
        const before = this.#last.atMs === atMs ? this.#last.count : 0;
        this.#last = { atMs, count: before + (await super.sweep()) };
        return this.#last.count;
      }
    },
  },
  {
    fault: "sweep() deletes finished tasks before their time",
    caughtBy: ["sweep.keeps-the-living"],
    Store: class extends ReferenceTaskStore {
      override isSwept(entry: Entry): boolean {
        return entry.record.status === "completed" || super.isSwept(entry);
      }
    },
  },
  {
    fault: "sweep() goes by the ttlMs at birth",
    caughtBy: ["sweep.follows-ttl-updates"],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        await super.create(record);
        this.backing.notes.set(record.taskId, record.ttlMs);
      }
      override isSwept({ record, bornAtMs }: Entry): boolean {
        const ttlMs = this.backing.notes.get(record.taskId) as number | null;
        return super.isSwept({ record: { ...record, ttlMs }, bornAtMs });
      }
    },
  },
];

/** A wrong store in which some updates start the age anew. */
function rebirthOnUpdate(restarts: (patch: TaskPatch) => boolean): Mutant["Store"] {
  return class extends ReferenceTaskStore {
    override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
      const version = await super.update(taskId, patch, expectedVersion);
      const entry = this.find(taskId);
      if (entry !== undefined && restarts(patch)) entry.bornAtMs = this.backing.nowMs;
      return version;
    }
  };
}
