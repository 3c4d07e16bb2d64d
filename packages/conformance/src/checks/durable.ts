import { defineCheck, type Check, type Need } from "../check.ts";
import { expectEqual, expectRejects, expectThat } from "../expect.ts";
import { isLongJobsError, type TaskStore } from "@longjobs/core";
import { completedRecord, fullRecord, minimalRecord, patched, resultOfBytes } from "../records.ts";
import { jsonValues } from "./values.ts";

/** What is there after `close` and reopening, and after a crash. */
export const durableChecks: readonly Check[] = [
  durableCheck(
    "durable.records-survive",
    "C19",
    "records are there after close() and reopening, to the last field",
    async (ctx) => {
      const records = [
        fullRecord({ taskId: "full" }),
        minimalRecord({ taskId: "minimal", version: 0 }),
        completedRecord(),
      ];
      for (const record of records) await ctx.store.create(record);
      const reopened = await ctx.reopen();
      for (const record of records)
        await ctx.expectStored(record, `The record ${record.taskId} after reopening`, reopened);
    },
  ),
  durableCheck(
    "durable.updates-survive",
    "C19",
    "updates, deleted fields and versions are there after reopening",
    async (ctx) => {
      const record = minimalRecord();
      await ctx.store.create({ ...record, statusMessage: "to be deleted" });
      const first = { progress: { done: 1 } };
      const last = { progress: { total: 9 }, data: null };
      const version = await ctx.store.update(
        "task-1",
        { ...first, statusMessage: undefined },
        record.version,
      );
      await ctx.store.update("task-1", last, version);
      const reopened = await ctx.reopen();
      await ctx.expectStored(patched(patched(record, first), last), "The record after reopening", reopened);
      await reopened.update("task-1", { statusMessage: "goes on" }, record.version + 2);
    },
  ),
  durableCheck(
    "durable.values-survive",
    "C19",
    "every JSON value is there after reopening as it went in",
    async (ctx) => {
      const records = Object.entries(jsonValues).map(([taskId, data]) => minimalRecord({ taskId, data }));
      for (const record of records) await ctx.store.create(record);
      const reopened = await ctx.reopen();
      for (const record of records)
        await ctx.expectStored(record, `The ${record.taskId} after reopening`, reopened);
    },
  ),
  durableCheck(
    "durable.large-records-survive",
    "C19",
    "large records are there after reopening",
    async (ctx) => {
      const records = ["a", "b", "c"].map((taskId) =>
        completedRecord({ taskId, result: resultOfBytes(ctx.maxRecordBytes / 2) }),
      );
      for (const record of records) await ctx.store.create(record);
      const reopened = await ctx.reopen();
      for (const record of records)
        await ctx.expectStored(record, `The large record ${record.taskId} after reopening`, reopened);
    },
  ),
  durableCheck(
    "durable.refused-writes-stay-absent",
    "C19",
    "writes that were refused are not there after reopening",
    async (ctx) => {
      const record = minimalRecord({ statusMessage: "kept" });
      const { store } = ctx;
      await store.create(record);
      await store.create(minimalRecord({ version: 7 })).catch(() => undefined);
      await store.update("task-1", { statusMessage: "stale" }, record.version - 1).catch(() => undefined);
      await store.update("task-2", { statusMessage: "unknown" }, record.version).catch(() => undefined);
      const reopened = await ctx.reopen();
      await ctx.expectStored(record, "The record after reopening", reopened);
      expectEqual(await reopened.get("task-2"), undefined, "The record nobody created, after reopening");
    },
  ),
  durableCheck(
    "durable.age-survives",
    "C19",
    "the age of a record goes on over close() and reopening",
    async (ctx) => {
      await ctx.store.create(minimalRecord({ ttlMs: 3 * ctx.unitMs }));
      await ctx.elapse(2 * ctx.unitMs);
      const reopened = await ctx.reopen();
      await ctx.elapse(1.5 * ctx.unitMs);
      expectEqual(
        await reopened.get("task-1"),
        undefined,
        "The task that was reopened at two thirds of its ttlMs",
      );
    },
    ["time"],
  ),
  durableCheck(
    "durable.rebirth-survives",
    "C19",
    "a record created anew after an expiry is the one that is there after reopening, with its own age",
    async (ctx) => {
      await ctx.store.create(fullRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(2 * ctx.unitMs);
      const reborn = minimalRecord({ version: 12, ttlMs: 10 * ctx.unitMs });
      await ctx.store.create(reborn);
      const reopened = await ctx.reopen();
      await ctx.elapse(ctx.unitMs);
      await ctx.expectStored(reborn, "The new record after reopening", reopened);
    },
    ["time"],
  ),
  durableCheck(
    "durable.writes-pending-at-close",
    "C19",
    "a write that was acknowledged while the store closed is there after reopening",
    async (ctx) => {
      const records = Array.from({ length: 10 }, (_, index) => minimalRecord({ taskId: `task-${index}` }));
      const pending = Promise.allSettled(records.map((record) => ctx.store.create(record)));
      const reopened = await ctx.reopen();
      const outcomes = await pending;
      for (const [index, record] of records.entries()) {
        const expected = outcomes[index]?.status === "fulfilled" ? record : undefined;
        expectEqual(
          await reopened.get(record.taskId),
          expected,
          "A record whose create() was pending at close()",
        );
      }
    },
  ),
  durableCheck(
    "durable.crash-keeps-acknowledged",
    "C21",
    "every acknowledged write is there after a crash",
    async (ctx) => {
      const record = minimalRecord();
      const patch = { statusMessage: "acknowledged", progress: { done: 1 } };
      await ctx.store.create(fullRecord({ taskId: "untouched" }));
      const untouched = await ctx.store.get("untouched");
      await ctx.store.create(record);
      await ctx.store.update("task-1", patch, record.version);
      const survivor = await ctx.crash();
      await ctx.expectStored(patched(record, patch), "The record after a crash", survivor);
      expectEqual(
        await survivor.get("untouched"),
        untouched,
        "The record that nobody wrote to, after a crash",
      );
    },
    ["crash"],
  ),
  durableCheck(
    "durable.crash-drops-refused",
    "C21",
    "every refused write is absent after a crash",
    async (ctx) => {
      const record = minimalRecord();
      await ctx.store.create(record);
      const stale = (): Promise<unknown> =>
        ctx.store.update("task-1", { statusMessage: "stale" }, record.version + 1);
      await expectRejects(stale, "version_conflict", "update() with another version");
      const tooLarge = completedRecord({
        taskId: "too-large",
        result: resultOfBytes(ctx.maxRecordBytes + 1),
      });
      await expectRejects(() => ctx.store.create(tooLarge), "record_too_large", "create() beyond the limit");
      const survivor = await ctx.crash();
      await ctx.expectStored(record, "The record after a crash", survivor);
      expectEqual(await survivor.get("too-large"), undefined, "The refused record after a crash");
    },
    ["crash"],
  ),
  durableCheck(
    "durable.crash-in-flight",
    "C21",
    "writes under way at a crash happened as a whole or not at all",
    async (ctx) => {
      const base = minimalRecord({ taskId: "base" });
      await ctx.store.create(base);
      const flights = launchWrites(ctx.store);
      const survivor = await ctx.crash();
      for (const flight of flights) await expectPossible(flight, survivor);
      await ctx.expectStored(base, "The record beside the writes under way", survivor);
    },
    ["crash"],
  ),
];

function durableCheck(
  id: string,
  rule: string,
  title: string,
  run: Check["run"],
  needs: readonly Need[] = [],
): Check {
  const opens: readonly Need[] = needs.includes("crash") ? [] : ["reopen"];
  return defineCheck({ id, rule, title, profile: "durable", needs: [...opens, ...needs], run });
}

interface Flight {
  readonly record: ReturnType<typeof minimalRecord>;
  outcome: "unknown" | "acknowledged" | "refused";
}

/** Starts creates without waiting; what is known of each when the crash comes is on its flight. */
function launchWrites(store: TaskStore): Flight[] {
  return Array.from({ length: 20 }, (_, index) => {
    const flight: Flight = { record: fullRecord({ taskId: `task-${index}` }), outcome: "unknown" };
    store.create(flight.record).then(
      () => {
        flight.outcome = "acknowledged";
      },
      (error: unknown) => {
        if (!isLongJobsError(error, "store_unavailable")) flight.outcome = "refused";
      },
    );
    return flight;
  });
}

async function expectPossible({ record, outcome }: Flight, store: TaskStore): Promise<void> {
  const found = await store.get(record.taskId);
  if (found !== undefined) expectEqual(found, record, "A record whose create() was under way at a crash");
  expectThat(
    outcome !== "acknowledged" || found !== undefined,
    `The acknowledged ${record.taskId} is gone after a crash.`,
  );
  expectThat(
    outcome !== "refused" || found === undefined,
    `The refused ${record.taskId} is there after a crash.`,
  );
}
