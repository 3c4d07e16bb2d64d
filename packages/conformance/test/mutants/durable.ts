import type { TaskPatch, TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import {
  Backing,
  ExclusiveReferenceTaskStore,
  mapJson,
  ReferenceTaskStore,
  type Entry,
  type Opening,
} from "../support/reference-task-store.ts";

/** A wrong store that reads its data back wrongly. */
function wrongAfter(
  opening: Opening,
  change: (entry: Entry, backing: Backing) => Entry | undefined,
): Mutant["Store"] {
  return class extends ReferenceTaskStore {
    constructor(backing: Backing, how: Opening) {
      super(backing, how);
      if (how !== opening) return;
      for (const [taskId, entry] of backing.entries) {
        const changed = change(entry, backing);
        if (changed === undefined) backing.entries.delete(taskId);
        else backing.entries.set(taskId, changed);
      }
    }
  };
}

function withRecord(entry: Entry, fields: object): Entry {
  return { ...entry, record: { ...entry.record, ...fields } };
}

export const durableMutants: readonly Mutant[] = [
  {
    fault: "reopening forgets the inbox",
    caughtBy: ["durable.records-survive"],
    Store: wrongAfter("reopen", (entry) => {
      const { inputs: _forgotten, ...record } = entry.record;
      return { ...entry, record };
    }),
  },
  {
    fault: "reopening reads strings up to NUL",
    caughtBy: ["durable.values-survive"],
    Store: wrongAfter("reopen", (entry) => {
      const cut = (value: unknown): unknown => (typeof value === "string" ? value.split("\u0000")[0] : value);
      return mapJson(entry, cut) as Entry;
    }),
  },
  {
    fault: "reopening drops records over 8 KiB",
    caughtBy: ["durable.large-records-survive"],
    Store: wrongAfter("reopen", (entry) => (JSON.stringify(entry).length > 8192 ? undefined : entry)),
  },
  {
    fault: "reopening brings deleted fields back",
    caughtBy: ["durable.updates-survive"],
    Store: class extends wrongAfter("reopen", (entry, backing) =>
      withRecord(entry, backing.notes.get(entry.record.taskId) ?? {}),
    ) {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        if ("statusMessage" in patch && patch.statusMessage === undefined) {
          this.backing.notes.set(record.taskId, { statusMessage: record.statusMessage });
        }
        return super.apply(record, patch);
      }
    },
  },
  {
    fault: "a refused create() is in the log, and reopening replays it",
    caughtBy: ["durable.refused-writes-stay-absent"],
    Store: class extends wrongAfter("reopen", (entry, backing) =>
      withRecord(entry, backing.notes.get(entry.record.taskId) ?? {}),
    ) {
      override async create(record: TaskRecord): Promise<void> {
        if (!this.closed && this.live(record.taskId)) this.backing.notes.set(record.taskId, record);
        await super.create(record);
      }
    },
  },
  {
    fault: "reopening starts every age anew",
    caughtBy: ["durable.age-survives"],
    Store: wrongAfter("reopen", (entry, { nowMs }) => ({ ...entry, bornAtMs: nowMs })),
  },
  {
    fault: "reopening reads the first record an id ever had",
    caughtBy: ["durable.rebirth-survives"],
    Store: class extends wrongAfter(
      "reopen",
      (entry, backing) => (backing.notes.get(entry.record.taskId) as Entry | undefined) ?? entry,
    ) {
      override put(entry: Entry): void {
        const old = this.find(entry.record.taskId);
        if (old !== undefined && this.isExpired(old)) this.backing.notes.set(entry.record.taskId, old);
        super.put(entry);
      }
    },
  },
  {
    fault: "close() drops a create() that is under way, which resolves all the same",
    caughtBy: ["durable.writes-pending-at-close"],
    Store: class extends ReferenceTaskStore {
      readonly #pending = new Set<string>();
      override async create(record: TaskRecord): Promise<void> {
        this.#pending.add(record.taskId);
        try {
          await super.create(record);
        } finally {
          this.#pending.delete(record.taskId);
        }
      }
      override async close(): Promise<void> {
        for (const taskId of this.#pending) this.backing.entries.delete(taskId);
        await super.close();
      }
    },
  },
  {
    fault: "update() is acknowledged before it is durable",
    caughtBy: ["durable.crash-keeps-acknowledged"],
    Store: class extends wrongAfter(
      "crash",
      (entry, backing) => (backing.notes.get(entry.record.taskId) as Entry | undefined) ?? entry,
    ) {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const before = this.find(taskId);
        const version = await super.update(taskId, patch, expectedVersion);
        this.backing.notes.set(taskId, before);
        return version;
      }
    },
  },
  {
    fault: "a refused update() is in the log, and a crash replays it",
    caughtBy: ["durable.crash-drops-refused"],
    Store: class extends wrongAfter("crash", (entry, backing) =>
      withRecord(entry, backing.notes.get(entry.record.taskId) ?? {}),
    ) {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const outcome = super.update(taskId, patch, expectedVersion);
        outcome.catch(() => this.backing.notes.set(taskId, patch));
        return outcome;
      }
    },
  },
  {
    fault: "a crash leaves half of a create() that was one of many",
    caughtBy: ["durable.crash-in-flight"],
    Store: class extends wrongAfter("crash", (entry, backing) => {
      const { work: _torn, ...record } = entry.record;
      return backing.notes.has(record.taskId) ? { ...entry, record } : entry;
    }) {
      #creating = 0;
      override async create(record: TaskRecord): Promise<void> {
        this.#creating += 1;
        if (this.#creating > 1) this.backing.notes.set(record.taskId, "one of many");
        try {
          await super.create(record);
        } finally {
          await Promise.resolve();
          this.#creating -= 1;
        }
      }
    },
  },
];

/** A wrong store that keeps claims in memory: `opening` shows the record as it was before. */
function forgetsClaims(opening: Opening): Mutant["Store"] {
  return class extends wrongAfter(
    opening,
    (entry, backing) => (backing.notes.get(entry.record.taskId) as Entry | undefined) ?? entry,
  ) {
    override take(entry: Entry, owner: string, leaseMs: number): TaskRecord {
      this.backing.notes.set(entry.record.taskId, entry);
      return super.take(entry, owner, leaseMs);
    }
  };
}

export const durableLeaseMutants: readonly Mutant[] = [
  {
    fault: "reopening forgets claims",
    caughtBy: ["durable.claims-survive"],
    Store: forgetsClaims("reopen"),
  },
  {
    fault: "claim() is acknowledged before it is durable",
    caughtBy: ["durable.crash-keeps-claims"],
    Store: forgetsClaims("crash"),
  },
  {
    fault: "an exclusive store that is opened anew waits for the leases of its predecessor",
    caughtBy: ["durable.leases-of-an-earlier-opening"],
    Store: class extends ExclusiveReferenceTaskStore {
      override endLeases(): void {}
    },
  },
  {
    fault: "reopening ends every lease, though other processes may hold them",
    caughtBy: ["durable.leases-of-an-earlier-opening"],
    Store: class extends ReferenceTaskStore {
      constructor(backing: Backing, opening: Opening) {
        super(backing, opening);
        if (opening === "reopen") backing.leaseEndsAtMs.clear();
      }
    },
  },
  {
    fault: "reopening starts every lease anew, with the duration in its record",
    caughtBy: ["durable.leases-of-an-earlier-opening"],
    Store: class extends ReferenceTaskStore {
      constructor(backing: Backing, opening: Opening) {
        super(backing, opening);
        if (opening !== "reopen") return;
        for (const { record } of backing.entries.values())
          this.setDeadline(record.taskId, record.lease?.durationMs);
      }
    },
  },
];
