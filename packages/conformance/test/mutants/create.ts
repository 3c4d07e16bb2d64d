import { storeErrors, type TaskPatch, type TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { mapJson, ReferenceTaskStore, type Entry } from "../support/reference-task-store.ts";

const knownFields = new Set(
  "taskId version status statusMessage createdAt lastUpdatedAt ttlMs pollIntervalMs result error scope work inputs checkpoint progress cancelRequestedAt lease attempt crashes finishedBy retentionMs idempotency kind data".split(
    " ",
  ),
);

export const createMutants: readonly Mutant[] = [
  {
    fault: "create() forgets pollIntervalMs",
    caughtBy: ["create.round-trip"],
    Store: class extends ReferenceTaskStore {
      override encode({ pollIntervalMs: _forgotten, ...rest }: TaskRecord): TaskRecord {
        return super.encode(rest);
      }
    },
  },
  {
    fault: "a failed record without an error gets an empty one",
    caughtBy: ["create.adds-nothing"],
    Store: class extends ReferenceTaskStore {
      override encode(record: TaskRecord): TaskRecord {
        const copy = super.encode(record);
        return copy.status === "failed" && copy.error === undefined
          ? { ...copy, error: { code: 0, message: "" } }
          : copy;
      }
    },
  },
  {
    fault: "every absent statusMessage is null, as a column of a table",
    caughtBy: [
      "create.adds-nothing",
      "create.undefined-is-absent",
      "update.created-at-refused",
      "fault.reads-tell-the-truth",
      "fault.writes-happened-or-not",
      "fault.goes-on-afterwards",
      "claim.spares-live-leases",
      "claim.resolves-to-the-records",
      "claim.bad-arguments-refused",
      "renew.changes-no-record",
      "race.one-claimer",
      "durable.claims-survive",
      "durable.crash-keeps-claims",
      "claim.seen-by-second-handle",
      "race.one-claimer-of-two-handles",
      "create.keeps-unknown-fields",
      "create.copies-the-record",
      "create.keeps-any-version",
      "create.reserved-ids",
      "create.large-is-kept",
      "get.gives-values",
      "get.writes-nothing",
      "update.copies-the-patch",
      "update.undefined-deletes",
      "update.null-is-a-value",
      "update.replaces-whole-fields",
      "update.task-id-refused",
      "update.version-refused",
      "update.too-large-rejects",
      "update.limit-counts-the-record",
      "values.strings",
      "values.numbers",
      "values.keys",
      "values.empties",
      "values.nesting",
      "time.lives-until-ttl",
      "time.null-never-expires",
      "time.long-ttl-is-long",
      "time.rebirth-has-a-new-age",
      "time.rebirth-after-sweep",
      "time.rebirth-has-its-own-version",
      "create.expired-id-is-free",
      "sweep.keeps-the-living",
      "race.sweep-spares-the-reborn",
      "durable.rebirth-survives",
      "durable.writes-pending-at-close",
      "durable.crash-in-flight",
      "create.seen-by-second-handle",
      "close.leaves-second-handle",
    ],
    Store: class extends ReferenceTaskStore {
      override decode(record: TaskRecord): TaskRecord {
        return { statusMessage: null, ...super.decode(record) } as unknown as TaskRecord;
      }
    },
  },
  {
    fault: "create() keeps the fields it knows",
    caughtBy: ["create.keeps-unknown-fields"],
    Store: class extends ReferenceTaskStore {
      override encode(record: TaskRecord): TaskRecord {
        const known = Object.entries(record).filter(([field]) => knownFields.has(field));
        return super.encode(Object.fromEntries(known) as TaskRecord);
      }
    },
  },
  {
    fault: "create() keeps undefined as null",
    caughtBy: ["create.undefined-is-absent"],
    Store: class extends ReferenceTaskStore {
      override encode(record: TaskRecord): TaskRecord {
        const fields = Object.entries(record).map(([field, value]) => [field, value ?? null]);
        return super.encode(Object.fromEntries(fields) as TaskRecord);
      }
    },
  },
  {
    fault: "create() over a finished task resolves without doing anything",
    caughtBy: ["create.existing-id-rejects"],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        if (!this.closed && this.live(record.taskId)?.record.status === "completed") return;
        await super.create(record);
      }
    },
  },
  {
    fault: "a refused create() leaves its data behind",
    caughtBy: ["create.existing-id-changes-nothing"],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        const taken = this.closed ? undefined : this.live(record.taskId);
        if (taken !== undefined && record.data !== undefined) {
          taken.record = { ...taken.record, data: record.data };
        }
        await super.create(record);
      }
    },
  },
  {
    fault: "create() keeps the caller's own object",
    caughtBy: ["create.copies-the-record"],
    Store: class extends ReferenceTaskStore {
      override encode(record: TaskRecord): TaskRecord {
        return Object.values(record).some((value) => value === undefined) ? super.encode(record) : record;
      }
    },
  },
  {
    fault: "create() takes version 0 for no version",
    caughtBy: ["create.keeps-any-version"],
    Store: class extends ReferenceTaskStore {
      override encode(record: TaskRecord): TaskRecord {
        return { ...super.encode(record), version: record.version === 0 ? 1 : record.version };
      }
    },
  },
  {
    fault: "create() has no limit",
    caughtBy: ["create.too-large-rejects"],
    Store: class extends ReferenceTaskStore {
      override assertFits(record: TaskRecord, patch?: TaskPatch): void {
        if (patch !== undefined) super.assertFits(record);
      }
    },
  },
  {
    fault: "create() refuses records of half the limit",
    caughtBy: ["create.large-is-kept"],
    Store: class extends ReferenceTaskStore {
      override assertFits(record: TaskRecord, patch?: TaskPatch): void {
        const bytes = JSON.stringify(record).length;
        if (patch === undefined && bytes > 32 * 1024) {
          throw storeErrors.recordTooLarge(record.taskId, bytes, 32 * 1024);
        }
        super.assertFits(record);
      }
    },
  },
];

export const getMutants: readonly Mutant[] = [
  {
    fault: "records are the properties of a plain object",
    caughtBy: ["get.unknown-is-undefined"],
    Store: class extends ReferenceTaskStore {
      override live(taskId: string): Entry | undefined {
        const inherited = taskId in {} ? { record: { taskId } as TaskRecord, bornAtMs: 0 } : undefined;
        return inherited ?? super.live(taskId);
      }
    },
  },
  {
    fault: "create() refuses ids that no client could send",
    caughtBy: ["create.reserved-ids"],
    Store: class extends ReferenceTaskStore {
      override async create(record: TaskRecord): Promise<void> {
        if (record.taskId.includes(".")) throw storeErrors.unknownTask(record.taskId);
        return super.create(record);
      }
    },
  },
  {
    fault: "a dot in an id is written as an underscore, as for a file name",
    caughtBy: ["create.reserved-ids"],
    Store: class extends ReferenceTaskStore {
      override find(taskId: string): Entry | undefined {
        return super.find(taskId) ?? super.find(taskId.replaceAll("_", "."));
      }
    },
  },
  {
    fault: "ids are compared without regard to case",
    caughtBy: ["get.compares-ids-exactly"],
    Store: class extends ReferenceTaskStore {
      override find(taskId: string): Entry | undefined {
        const wanted = taskId.toLowerCase();
        return [...this.backing.entries.values()].find(
          ({ record }) => record.taskId.toLowerCase() === wanted,
        );
      }
    },
  },
  {
    fault: "ids are compared in one Unicode form",
    caughtBy: ["get.compares-ids-exactly"],
    Store: class extends ReferenceTaskStore {
      override find(taskId: string): Entry | undefined {
        return super.find(taskId.normalize("NFC"));
      }
    },
  },
  {
    fault: "get() hands out the stored object",
    caughtBy: ["get.gives-values"],
    Store: class extends ReferenceTaskStore {
      override decode(record: TaskRecord): TaskRecord {
        return record;
      }
    },
  },
  {
    fault: "get() stamps lastUpdatedAt at the third read",
    caughtBy: ["get.writes-nothing"],
    Store: class extends ReferenceTaskStore {
      readonly #reads = new Map<string, number>();
      override decode(record: TaskRecord): TaskRecord {
        const reads = (this.#reads.get(record.taskId) ?? 0) + 1;
        this.#reads.set(record.taskId, reads);
        if (reads === 3 && !this.backing.failing)
          Object.assign(record, { lastUpdatedAt: "2099-01-01T00:00:00.000Z" });
        return super.decode(record);
      }
    },
  },
];

/** A wrong store that changes values on their way in. */
function lossy(change: (value: unknown) => unknown): Mutant["Store"] {
  return class extends ReferenceTaskStore {
    override encode(record: TaskRecord): TaskRecord {
      return mapFields(super.encode(record));
    }
    override encodePatch(patch: TaskPatch): TaskPatch {
      return mapFields(super.encodePatch(patch));
    }
  };
  function mapFields<T extends object>(fields: T): T {
    const mapped = Object.entries(fields).map(([field, value]) => [
      field,
      typeof value === "object" && value !== null ? mapJson(value, change) : value,
    ]);
    return Object.fromEntries(mapped) as T;
  }
}

export const valueMutants: readonly Mutant[] = [
  {
    fault: "strings end at NUL",
    caughtBy: ["values.strings"],
    Store: lossy((value) => (typeof value === "string" ? value.split("\u0000")[0] : value)),
  },
  {
    fault: "lone surrogates become replacement characters",
    caughtBy: ["values.strings"],
    Store: lossy((value) =>
      typeof value === "string" ? value.replaceAll(/\p{Surrogate}/gu, "\uFFFD") : value,
    ),
  },
  {
    fault: "numbers have 15 digits",
    caughtBy: ["values.numbers"],
    Store: lossy((value) => (typeof value === "number" ? Number(value.toPrecision(15)) : value)),
  },
  {
    fault: "objects are copied by assignment, which loses __proto__",
    caughtBy: ["values.keys"],
    Store: lossy((value) => {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
      const copy: Record<string, unknown> = {};
      for (const [key, member] of Object.entries(value)) copy[key] = member;
      return copy;
    }),
  },
  {
    fault: "null disappears from arrays",
    caughtBy: ["values.empties"],
    Store: lossy((value) => (Array.isArray(value) ? value.filter((member) => member !== null) : value)),
  },
  {
    fault: "values are cut at 100 levels",
    caughtBy: ["values.nesting"],
    Store: lossy((value) => (levelsOf(value) > 100 ? "too deep" : value)),
  },
];

function levelsOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf));
}
