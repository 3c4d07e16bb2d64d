import type { TaskRecord } from "@longjobs/core";

import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check, type Need } from "../check.ts";
import { expectEqual, expectRejects } from "../expect.ts";
import { expectPossible, launchCreates } from "../flight.ts";
import { completedRecord, fullRecord, minimalRecord, resultOfBytes } from "../records.ts";
import { jsonValues } from "./values.ts";

/** What is there after `close` and reopening, and after a crash. */
export const durableChecks: readonly Check[] = [
  durableCheck(
    "durable.records-survive",
    "C19",
    "a record is there after close() and reopening, to the last field",
    (ctx) =>
      survivesReopening(ctx, [
        fullRecord({ taskId: "full" }),
        minimalRecord({ taskId: "minimal", version: 0 }),
      ]),
  ),
  durableCheck(
    "durable.values-survive",
    "C19",
    "every JSON value is there after reopening as it was before",
    (ctx) =>
      survivesReopening(
        ctx,
        Object.entries(jsonValues).map(([taskId, data]) => minimalRecord({ taskId, data })),
      ),
  ),
  durableCheck("durable.large-records-survive", "C19", "large records are there after reopening", (ctx) => {
    const result = resultOfBytes(ctx.maxRecordBytes / 4);
    return survivesReopening(
      ctx,
      ["a", "b", "c"].map((taskId) => completedRecord({ taskId, result })),
    );
  }),
  durableCheck(
    "durable.updates-survive",
    "C19",
    "updates, deleted fields and versions are there after reopening, and the versions go on",
    async (ctx) => {
      const { version } = minimalRecord();
      await ctx.store.create(minimalRecord({ statusMessage: "to be deleted" }));
      await ctx.store.update("task-1", { progress: { done: 1 }, statusMessage: undefined }, version);
      await ctx.store.update("task-1", { progress: { total: 9 }, data: null }, version + 1);
      const before = await ctx.store.get("task-1");
      const reopened = await ctx.reopen();
      expectEqual(await reopened.get("task-1"), before, "The record after reopening");
      await reopened.update("task-1", { statusMessage: "goes on" }, version + 2);
    },
  ),
  durableCheck(
    "durable.refused-writes-stay-absent",
    "C19",
    "writes that were refused are not there after reopening",
    async (ctx) => {
      const { version } = minimalRecord();
      await ctx.store.create(minimalRecord({ statusMessage: "kept" }));
      const before = await ctx.store.get("task-1");
      await ctx.store.create(minimalRecord({ version: 7 })).catch(() => undefined);
      await ctx.store.update("task-1", { statusMessage: "stale" }, version - 1).catch(() => undefined);
      const reopened = await ctx.reopen();
      expectEqual(await reopened.get("task-1"), before, "The record after refused writes and reopening");
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
    "a record created anew after an expiry is the one that is there after reopening",
    async (ctx) => {
      await ctx.store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(2 * ctx.unitMs);
      const reborn = minimalRecord({ version: 2_000_000, ttlMs: 10 * ctx.unitMs });
      await ctx.store.create(reborn);
      const reopened = await ctx.reopen();
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
      await ctx.store.create(fullRecord({ taskId: "untouched" }));
      await ctx.store.create(minimalRecord());
      await ctx.store.update("task-1", { statusMessage: "acknowledged" }, minimalRecord().version);
      const before = [await ctx.store.get("untouched"), await ctx.store.get("task-1")];
      const survivor = await ctx.crash();
      const after = [await survivor.get("untouched"), await survivor.get("task-1")];
      expectEqual(after, before, "The records after a crash");
    },
    ["crash"],
  ),
  durableCheck(
    "durable.crash-drops-refused",
    "C21",
    "every refused write is absent after a crash",
    async (ctx) => {
      const { version } = minimalRecord();
      await ctx.store.create(minimalRecord());
      const before = await ctx.store.get("task-1");
      const stale = (): Promise<unknown> =>
        ctx.store.update("task-1", { statusMessage: "stale" }, version + 1);
      await expectRejects(stale, "version_conflict", "update() with another version");
      const tooLarge = { data: resultOfBytes(ctx.maxRecordBytes + 1) };
      const large = (): Promise<unknown> => ctx.store.update("task-1", tooLarge, version);
      await expectRejects(large, "record_too_large", "update() beyond the limit");
      const survivor = await ctx.crash();
      expectEqual(await survivor.get("task-1"), before, "The record after refused writes and a crash");
    },
    ["crash"],
  ),
  durableCheck(
    "durable.crash-in-flight",
    "C21",
    "writes under way at a crash happened as a whole or not at all",
    async (ctx) => {
      const records = Array.from({ length: 20 }, (_, index) =>
        minimalRecord({ taskId: `task-${index}`, work: { tool: "render" } }),
      );
      const flights = launchCreates(ctx.store, records);
      const survivor = await ctx.crash();
      for (const flight of flights) await expectPossible(flight, survivor, "a crash");
    },
    ["crash"],
  ),
];

/** What `get` shows before `close` it shows after reopening. */
async function survivesReopening(ctx: CheckContext, records: readonly TaskRecord[]): Promise<void> {
  for (const record of records) await ctx.store.create(record);
  const before = await Promise.all(records.map(({ taskId }) => ctx.store.get(taskId)));
  const reopened = await ctx.reopen();
  const after = await Promise.all(records.map(({ taskId }) => reopened.get(taskId)));
  expectEqual(after, before, "What the store shows after reopening");
}

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
