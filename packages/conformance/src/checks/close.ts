import { defineCheck, type Check } from "../check.ts";
import { minimalRecord } from "../records.ts";

/** What `close` promises; that the other methods reject afterwards is a trait of each. */
export const closeChecks: readonly Check[] = [
  defineCheck({
    id: "close.is-idempotent",
    rule: "C18",
    title: "close() resolves again when it is called twice, and twice at once",
    async run(ctx) {
      await Promise.all([ctx.close(), ctx.store.close()]);
      await ctx.store.close();
    },
  }),
  defineCheck({
    id: "close.settles-pending-writes",
    rule: "C18",
    title: "a write that is under way when close() is called settles",
    async run(ctx) {
      const { version } = minimalRecord();
      const ids = ["a", "b", "c"];
      for (const taskId of ids) await ctx.store.create(minimalRecord({ taskId }));
      const writes = ids.map((taskId) => ctx.store.update(taskId, { statusMessage: "late" }, version));
      const settled = Promise.allSettled(writes);
      await ctx.close();
      await settled;
    },
  }),
];
