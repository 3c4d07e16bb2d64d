import { LongJobsError, storeErrors, type TaskPatch, type TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { maxRecordBytes, ReferenceTaskStore } from "../support/reference-task-store.ts";

export const updateMutants: readonly Mutant[] = [
  {
    fault: "update() resolves to the version it was given",
    caughtBy: ["update.resolves-to-next-version"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        return (await super.update(taskId, patch, expectedVersion)) - 1;
      }
    },
  },
  {
    fault: "update() stamps lastUpdatedAt itself",
    caughtBy: ["update.applies-patch"],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        const { lastUpdatedAt } = record;
        return { ...super.apply(record, patch), lastUpdatedAt };
      }
    },
  },
  {
    fault: "an empty patch is not a write",
    caughtBy: ["update.no-change-counts"],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        return Object.keys(patch).length === 0 ? record : super.apply(record, patch);
      }
    },
  },
  {
    fault: "version 0 means any version",
    caughtBy: ["update.stale-version-rejected"],
    Store: class extends ReferenceTaskStore {
      override matches(record: TaskRecord, expectedVersion: number): boolean {
        return expectedVersion === 0 || super.matches(record, expectedVersion);
      }
    },
  },
  {
    fault: "versions are not compared at all",
    caughtBy: [
      "update.stale-version-rejected",
      "update.future-version-rejected",
      "update.conflict-changes-nothing",
      "time.rebirth-has-its-own-version",
      "race.one-writer",
      "race.reads-follow-writes",
      "durable.refused-writes-stay-absent",
      "durable.crash-drops-refused",
      "race.claims-follow-writes",
      "update.stale-for-second-handle",
      "race.one-writer-of-two-handles",
      "race.reads-follow-writes-of-two-handles",
    ],
    Store: class extends ReferenceTaskStore {
      override matches(): boolean {
        return true;
      }
    },
  },
  {
    fault: "a version far ahead passes",
    caughtBy: ["update.future-version-rejected"],
    Store: class extends ReferenceTaskStore {
      override matches(record: TaskRecord, expectedVersion: number): boolean {
        return expectedVersion > record.version + 1 || super.matches(record, expectedVersion);
      }
    },
  },
  {
    fault: "a refused update() leaves its data behind",
    caughtBy: ["update.conflict-changes-nothing"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const entry = this.find(taskId);
        const refused = entry !== undefined && !this.matches(entry.record, expectedVersion);
        if (refused && patch.data !== undefined) entry.record = { ...entry.record, data: patch.data };
        return super.update(taskId, patch, expectedVersion);
      }
    },
  },
  {
    fault: "update() keeps the caller's own objects",
    caughtBy: ["update.copies-the-patch"],
    Store: class extends ReferenceTaskStore {
      override encodePatch(patch: TaskPatch): TaskPatch {
        return Object.fromEntries(Object.entries(patch));
      }
    },
  },
  {
    fault: "undefined in a patch is ignored",
    caughtBy: [
      "update.undefined-deletes",
      "claim.deleted-lease-is-free",
      "claim.tokens-are-fresh",
      "renew.old-token-is-lost",
      "renew.lost-ones-spare-others",
      "race.claims-follow-writes",
    ],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        const named = Object.entries(patch).filter(([, value]) => value !== undefined);
        return super.apply(record, Object.fromEntries(named));
      }
    },
  },
  {
    fault: "undefined in a patch is kept as null",
    caughtBy: ["update.undefined-deletes"],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        const kept = Object.entries(patch).map(([field, value]) => [field, value ?? null]);
        return super.apply(record, Object.fromEntries(kept) as TaskPatch);
      }
    },
  },
  {
    fault: "null in a patch deletes",
    caughtBy: ["update.null-is-a-value"],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        const deleting = Object.entries(patch).map(([field, value]) => [field, value ?? undefined]);
        return super.apply(record, Object.fromEntries(deleting) as TaskPatch);
      }
    },
  },
  {
    fault: "update() drops the idempotency field unless the patch names it",
    caughtBy: ["update.unnamed-fields-stay"],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        const { idempotency: _dropped, ...rest } = super.apply(record, patch);
        return rest;
      }
    },
  },
  {
    fault: "update() merges progress into the old progress",
    caughtBy: ["update.replaces-whole-fields"],
    Store: class extends ReferenceTaskStore {
      override apply(record: TaskRecord, patch: TaskPatch): TaskRecord {
        const merged = patch.progress && { ...record.progress, ...patch.progress };
        return super.apply(record, merged === undefined ? patch : { ...patch, progress: merged });
      }
    },
  },
  {
    fault: "update() takes inherited keys of the patch too",
    caughtBy: ["update.own-string-keys-only"],
    Store: class extends ReferenceTaskStore {
      override encodePatch(patch: TaskPatch): TaskPatch {
        const all: Record<string, unknown> = {};
        for (const field in patch) all[field] = structuredClone(patch[field as keyof TaskPatch]);
        return all;
      }
    },
  },
  {
    fault: "taskId in a patch is ignored",
    caughtBy: ["update.task-id-refused"],
    Store: class extends ReferenceTaskStore {
      override encodePatch(patch: TaskPatch): TaskPatch {
        return withoutField(super.encodePatch(patch), "taskId");
      }
    },
  },
  {
    fault: "version in a patch is ignored",
    caughtBy: ["update.version-refused"],
    Store: class extends ReferenceTaskStore {
      override encodePatch(patch: TaskPatch): TaskPatch {
        return withoutField(super.encodePatch(patch), "version");
      }
    },
  },
  {
    fault: "createdAt in a patch is ignored",
    caughtBy: ["update.created-at-refused"],
    Store: class extends ReferenceTaskStore {
      override encodePatch(patch: TaskPatch): TaskPatch {
        return withoutField(super.encodePatch(patch), "createdAt");
      }
    },
  },
  {
    fault: "a finishing update() has no limit",
    caughtBy: ["update.too-large-rejects"],
    Store: class extends ReferenceTaskStore {
      override assertFits(record: TaskRecord, patch?: TaskPatch): void {
        if (patch?.status === undefined) super.assertFits(record, patch);
      }
    },
  },
  {
    fault: "update() applies the limit to the patch alone",
    caughtBy: ["update.limit-counts-the-record"],
    Store: class extends ReferenceTaskStore {
      override assertFits(record: TaskRecord, patch?: TaskPatch): void {
        super.assertFits(patch === undefined ? record : ({ taskId: record.taskId, ...patch } as TaskRecord));
      }
    },
  },
  {
    fault: "update() counts every byte that was ever written",
    caughtBy: ["update.replaced-bytes-are-free"],
    Store: class extends ReferenceTaskStore {
      #written = 0;
      override assertFits(record: TaskRecord, patch?: TaskPatch): void {
        super.assertFits(record, patch);
        if (patch !== undefined) this.#written += JSON.stringify(patch).length;
        if (this.#written > 1.5 * maxRecordBytes) {
          throw storeErrors.recordTooLarge(record.taskId, this.#written, maxRecordBytes);
        }
      }
    },
  },
  {
    fault: "update() of an unknown id resolves",
    caughtBy: ["update.unknown-id-rejects"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const missing = !this.closed && this.find(taskId) === undefined;
        return missing ? expectedVersion + 1 : super.update(taskId, patch, expectedVersion);
      }
    },
  },
  {
    fault: "update() of an unknown id leaves a record behind",
    caughtBy: ["update.unknown-id-creates-nothing"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        if (!this.closed && this.find(taskId) === undefined) {
          this.put({ record: { taskId, ttlMs: null, ...patch } as TaskRecord, bornAtMs: 0 });
          throw storeErrors.unknownTask(taskId);
        }
        return super.update(taskId, patch, expectedVersion);
      }
    },
  },
];

const methods = ["create", "get", "update", "sweep", "watch", "claim", "renew"] as const;

export const closeMutants: readonly Mutant[] = [
  {
    fault: "close() rejects the second time",
    caughtBy: ["close.is-idempotent"],
    Store: class extends ReferenceTaskStore {
      override async close(): Promise<void> {
        this.assertOpen();
        await super.close();
      }
    },
  },
  {
    fault: "an update() that close() overtakes never settles",
    caughtBy: ["close.settles-pending-writes"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const version = await super.update(taskId, patch, expectedVersion);
        await Promise.resolve();
        return this.closed ? new Promise<never>(() => undefined) : version;
      }
    },
  },
  ...methods.map((method): Mutant => ({
    fault: `${method}() works on after close()`,
    caughtBy: [`${method}.after-close-rejects`],
    Store: class extends ReferenceTaskStore {
      constructor(...args: ConstructorParameters<typeof ReferenceTaskStore>) {
        super(...args);
        const closedMethod = this[method].bind(this) as (...args: unknown[]) => Promise<unknown>;
        const openMethod = (...given: unknown[]): Promise<unknown> => {
          const { closed } = this;
          this.closed = false;
          const outcome = closedMethod(...given);
          this.closed = closed;
          return outcome;
        };
        Object.defineProperty(this, method, { value: openMethod });
      }
    },
  })),
  {
    fault: "calls after close() reject with another code",
    caughtBy: methods.map((method) => `${method}.after-close-rejects`),
    Store: class extends ReferenceTaskStore {
      override assertOpen(): void {
        if (this.closed) throw new LongJobsError("store_unavailable", "The store is closed.");
      }
    },
  },
];

function withoutField(patch: TaskPatch, field: string): TaskPatch {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => key !== field));
}
