import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectRejects, expectThat } from "../expect.ts";
import { minimalRecord } from "../records.ts";

const hour = 60 * 60 * 1000;

/** When a record expires, and what its id is good for then. */
export const timeChecks: readonly Check[] = [
  defineCheck({
    id: "time.expires-at-ttl",
    rule: "C16",
    title: "a task has expired when its age is ttlMs",
    needs: ["time"],
    async run(ctx) {
      await ctx.store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(ctx.unitMs);
      await ctx.expectGone("task-1", "The task at the age of its ttlMs");
    },
  }),
  defineCheck({
    id: "time.lives-until-ttl",
    rule: "C16",
    title: "a task has not expired while its age is below ttlMs",
    needs: ["time"],
    async run(ctx) {
      const record = minimalRecord({ ttlMs: 5 * ctx.unitMs });
      await ctx.store.create(record);
      await ctx.elapseAlmost(5 * ctx.unitMs);
      await ctx.expectStored(record, "The task before the end of its ttlMs");
    },
  }),
  defineCheck({
    id: "time.null-never-expires",
    rule: "C16",
    title: "a task whose ttlMs is null never expires",
    needs: ["time"],
    async run(ctx) {
      const record = minimalRecord({ ttlMs: null });
      await ctx.store.create(record);
      await ctx.elapse(ctx.longMs);
      await ctx.expectStored(record, "The task without an end");
      await ctx.store.sweep();
      await ctx.expectStored(record, "The task without an end after sweep()");
    },
  }),
  defineCheck({
    id: "time.long-ttl-is-long",
    rule: "C16",
    title: "a ttlMs beyond the limit of timers, 2^31 - 1 ms, does not end at once",
    needs: ["time"],
    async run(ctx) {
      const record = minimalRecord({ ttlMs: 60 * 24 * hour });
      await ctx.store.create(record);
      // A timer of the store that overflowed is due after 1 ms: before one of ours that is due after 20 ms.
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
      await ctx.elapse(ctx.unitMs);
      await ctx.expectStored(record, "The task with a ttlMs of 60 days");
    },
  }),
  defineCheck({
    id: "time.counts-on-the-stores-clock",
    rule: "C16",
    title: "the age counts from the birth on the store's clock, whatever createdAt says",
    needs: ["time"],
    async run(ctx) {
      for (const [taskId, offsetMs] of [
        ["behind", -48 * hour],
        ["ahead", 48 * hour],
      ] as const) {
        const createdAt = new Date(Date.now() + offsetMs).toISOString();
        await ctx.store.create(
          minimalRecord({ taskId, createdAt, lastUpdatedAt: createdAt, ttlMs: 3 * ctx.unitMs }),
        );
      }
      await ctx.elapse(ctx.unitMs);
      expectThat(
        (await ctx.store.get("behind")) !== undefined,
        "A task created by a clock that is behind expired early.",
      );
      await ctx.elapse(3 * ctx.unitMs);
      await ctx.expectGone("ahead", "The task created by a clock that is ahead");
    },
  }),
  defineCheck({
    id: "time.reads-do-not-extend",
    rule: "C16",
    title: "reading a task does not put off its end",
    needs: ["time"],
    async run(ctx) {
      await ctx.store.create(minimalRecord({ ttlMs: 3 * ctx.unitMs }));
      await ctx.elapse(2 * ctx.unitMs);
      await ctx.store.get("task-1");
      await ctx.elapse(1.5 * ctx.unitMs);
      expectEqual(await ctx.store.get("task-1"), undefined, "The task that was read in between");
    },
  }),
  defineCheck({
    id: "time.updates-do-not-extend",
    rule: "C16",
    title: "an update that does not name ttlMs does not put off the end",
    needs: ["time"],
    async run(ctx) {
      await ctx.store.create(minimalRecord({ ttlMs: 3 * ctx.unitMs }));
      await ctx.elapse(2 * ctx.unitMs);
      await ctx.store.update("task-1", { statusMessage: "still at work" }, minimalRecord().version);
      await ctx.elapse(1.5 * ctx.unitMs);
      expectEqual(await ctx.store.get("task-1"), undefined, "The task that was written in between");
    },
  }),
  defineCheck({
    id: "time.longer-ttl-moves-the-end",
    rule: "C16",
    title: "an update to a longer ttlMs moves the end back",
    needs: ["time"],
    async run(ctx) {
      await ctx.store.create(minimalRecord({ ttlMs: 2 * ctx.unitMs }));
      await ctx.store.update("task-1", { ttlMs: 6 * ctx.unitMs }, minimalRecord().version);
      await ctx.elapse(4 * ctx.unitMs);
      expectThat(
        (await ctx.store.get("task-1")) !== undefined,
        "The task expired at the end it had before the update.",
      );
    },
  }),
  defineCheck({
    id: "time.ttl-update-keeps-the-birth",
    rule: "C16",
    title: "an update of ttlMs counts from the birth of the record, not from the update",
    needs: ["time"],
    async run(ctx) {
      await ctx.store.create(minimalRecord({ ttlMs: 20 * ctx.unitMs }));
      await ctx.elapse(4 * ctx.unitMs);
      await ctx.store.update("task-1", { ttlMs: 3 * ctx.unitMs }, minimalRecord().version);
      expectEqual(await ctx.store.get("task-1"), undefined, "The task whose new ttlMs is below its age");
    },
  }),
  defineCheck({
    id: "time.rebirth-has-a-new-age",
    rule: "C23",
    title: "a record created anew after an expiry has an age of its own",
    needs: ["time"],
    async run(ctx) {
      const { store, unitMs } = ctx;
      await store.create(minimalRecord({ ttlMs: 3 * unitMs }));
      await ctx.elapse(4 * unitMs);
      const reborn = minimalRecord({ ttlMs: 5 * unitMs, version: 2_000_000 });
      await store.create(reborn);
      await ctx.elapse(2 * unitMs);
      await ctx.expectStored(reborn, "The new record at an age below its ttlMs");
      await ctx.elapse(6 * unitMs);
      await ctx.expectGone("task-1", "The new record at an age beyond its ttlMs");
    },
  }),
  defineCheck({
    id: "time.rebirth-after-sweep",
    rule: "C23",
    title: "an id can be created anew after a sweep took the expired record",
    needs: ["time"],
    async run(ctx) {
      const { store, unitMs } = ctx;
      await store.create(minimalRecord({ ttlMs: unitMs }));
      await ctx.elapse(3 * unitMs);
      await store.sweep();
      const reborn = minimalRecord({ ttlMs: 3.5 * unitMs, version: 2_000_000 });
      await store.create(reborn);
      await ctx.elapse(unitMs);
      await ctx.expectStored(reborn, "The new record");
      expectEqual(await store.sweep(), 0, "What sweep() resolved to while the new record lives");
    },
  }),
  defineCheck({
    id: "time.rebirth-has-its-own-version",
    rule: "C12",
    title: "a record created anew has the version it is given, and a writer of the old one conflicts",
    needs: ["time"],
    async run(ctx) {
      const { store, unitMs } = ctx;
      const oldVersion = 13;
      await store.create(minimalRecord({ ttlMs: unitMs, version: oldVersion }));
      await ctx.elapse(unitMs * 1.5);
      const reborn = minimalRecord({ version: 12 });
      await store.create(reborn);
      await ctx.expectStored(reborn, "The new record");
      const late = (): Promise<unknown> => store.update("task-1", { statusMessage: "late" }, oldVersion);
      await expectRejects(late, "version_conflict", "update() by a writer of the old record");
    },
  }),
];
