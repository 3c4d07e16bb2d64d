import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectRejects } from "../expect.ts";
import { fullRecord, minimalRecord, statuses } from "../records.ts";
import { storeMethods } from "./methods.ts";

/** An expired task looks unknown to every method. */
export const expiredIdChecks: readonly Check[] = [
  defineCheck({
    id: "get.expired-is-undefined",
    rule: "C5",
    title: "get() of an expired task resolves to undefined, whatever its status",
    needs: ["time"],
    async run(ctx) {
      for (const status of statuses) {
        await ctx.store.create(minimalRecord({ taskId: status, status, ttlMs: ctx.unitMs }));
      }
      await ctx.elapse(1.5 * ctx.unitMs);
      for (const status of statuses) {
        expectEqual(await ctx.store.get(status), undefined, `get() of an expired ${status} task`);
      }
    },
  }),
  defineCheck({
    id: "update.expired-rejects",
    rule: "C5",
    title: "update() of an expired task rejects with unknown_task and does not bring it back",
    needs: ["time"],
    async run(ctx) {
      await createExpired(ctx);
      await expectRejects(
        () => storeMethods.update(ctx.store),
        "unknown_task",
        "update() of an expired task",
      );
      const extend = (): Promise<unknown> =>
        ctx.store.update("task-1", { ttlMs: null }, minimalRecord().version);
      await expectRejects(extend, "unknown_task", "update() that would extend an expired task");
      expectEqual(await ctx.store.get("task-1"), undefined, "The expired task after update()");
    },
  }),
  defineCheck({
    id: "create.expired-id-is-free",
    rule: "C5",
    title: "create() with the id of an expired task succeeds, and nothing of the old record shows",
    needs: ["time"],
    async run(ctx) {
      await createExpired(ctx);
      const record = minimalRecord({ version: 2_000_000 });
      await ctx.store.create(record);
      await ctx.expectStored(record, "The record created under an expired id");
    },
  }),
];

async function createExpired(ctx: CheckContext): Promise<void> {
  await ctx.store.create(fullRecord({ ttlMs: ctx.unitMs }));
  await ctx.elapse(1.5 * ctx.unitMs);
}
