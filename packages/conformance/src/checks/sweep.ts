import { defineCheck, type Check } from "../check.ts";
import { expectEqual } from "../expect.ts";
import { completedRecord, minimalRecord } from "../records.ts";

/** What `sweep` promises. */
export const sweepChecks: readonly Check[] = [
  defineCheck({
    id: "sweep.resolves-to-count",
    rule: "C17",
    title: "sweep() resolves to the number of expired records, 0 when there is none",
    needs: ["time"],
    async run(ctx) {
      const { store, unitMs } = ctx;
      expectEqual(await store.sweep(), 0, "What sweep() of an empty store resolved to");
      for (const taskId of ["a", "b", "c"]) await store.create(minimalRecord({ taskId, ttlMs: unitMs }));
      await store.create(minimalRecord({ taskId: "stays" }));
      await ctx.elapse(unitMs * 1.5);
      expectEqual(await store.sweep(), 3, "What sweep() with three expired records of four resolved to");
    },
  }),
  defineCheck({
    id: "sweep.second-finds-nothing",
    rule: "C17",
    title: "a second sweep() at the same moment resolves to 0",
    needs: ["time"],
    async run(ctx) {
      await ctx.store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(ctx.unitMs * 1.5);
      await ctx.store.sweep();
      expectEqual(await ctx.store.sweep(), 0, "What the second sweep() resolved to");
    },
  }),
  defineCheck({
    id: "sweep.keeps-the-living",
    rule: "C17",
    title: "sweep() leaves records that have not expired as they are, finished ones too",
    needs: ["time"],
    async run(ctx) {
      const living = [
        minimalRecord({ taskId: "for-ever" }),
        minimalRecord({ taskId: "running", ttlMs: 100 * ctx.unitMs }),
        completedRecord({ taskId: "finished", ttlMs: 100 * ctx.unitMs }),
      ];
      for (const record of living) await ctx.store.create(record);
      await ctx.store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(ctx.unitMs * 1.5);
      await ctx.store.sweep();
      for (const record of living)
        await ctx.expectStored(record, `The record ${record.taskId} after sweep()`);
    },
  }),
  defineCheck({
    id: "sweep.follows-ttl-updates",
    rule: "C17",
    title: "sweep() goes by the ttlMs of now, not by the one at birth",
    needs: ["time"],
    async run(ctx) {
      const { store, unitMs } = ctx;
      await store.create(minimalRecord({ taskId: "longer", ttlMs: 2 * unitMs }));
      await store.update("longer", { ttlMs: 100 * unitMs }, minimalRecord().version);
      for (const taskId of ["shorter", "shorter too"]) {
        await store.create(minimalRecord({ taskId, ttlMs: 100 * unitMs }));
        await store.update(taskId, { ttlMs: unitMs }, minimalRecord().version);
      }
      await ctx.elapse(2.5 * unitMs);
      expectEqual(
        await store.sweep(),
        2,
        "What sweep() of two shortened tasks and a lengthened one resolved to",
      );
    },
  }),
];
