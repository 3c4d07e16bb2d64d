import type { TaskStore } from "@longjobs/core";

import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check, type Need } from "../check.ts";
import { expectEqual, expectRejects } from "../expect.ts";
import { expectClaims, heldRecord, longLeaseMs } from "../lease-check.ts";
import { minimalRecord, patched } from "../records.ts";
import { waitFor } from "../wait.ts";

/** What one handle did, another one sees: for each method. */
export const twoHandleChecks: readonly Check[] = [
  sharedCheck(
    "create.seen-by-second-handle",
    "a record created by one handle is there for another",
    async (ctx, second) => {
      const record = minimalRecord();
      await ctx.store.create(record);
      await ctx.expectStored(record, "The record seen by the second handle", second);
    },
  ),
  sharedCheck(
    "create.taken-for-second-handle",
    "an id taken by one handle is taken for another",
    async (ctx, second) => {
      await ctx.store.create(minimalRecord());
      const again = minimalRecord({ version: 7 });
      await expectRejects(() => second.create(again), "task_exists", "create() by the second handle");
    },
  ),
  sharedCheck(
    "update.seen-by-second-handle",
    "an update by one handle is seen by another that had read before",
    async (ctx, second) => {
      const record = minimalRecord({ checkpoint: { value: 1, asked: {} } });
      const patch = { statusMessage: "by the first handle", checkpoint: { value: 2, asked: {} } };
      await ctx.store.create(record);
      await second.get("task-1");
      await ctx.store.update("task-1", patch, record.version);
      await ctx.expectStored(patched(record, patch), "The record seen by the second handle", second);
    },
  ),
  sharedCheck(
    "update.stale-for-second-handle",
    "a version that one handle used up is stale for another",
    async (ctx, second) => {
      const record = minimalRecord();
      const patch = { statusMessage: "by the first handle" };
      await ctx.store.create(record);
      await second.get("task-1");
      await ctx.store.update("task-1", patch, record.version);
      const late = (): Promise<unknown> =>
        second.update("task-1", { cancelRequestedAt: new Date().toISOString() }, record.version);
      await expectRejects(late, "version_conflict", "update() by the second handle");
      await ctx.expectStored(patched(record, patch), "The record after the refused update()");
    },
  ),
  sharedCheck(
    "get.expired-for-second-handle",
    "a task that expired looks unknown to every handle",
    async (ctx, second) => {
      await ctx.store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await second.get("task-1");
      await ctx.elapse(1.5 * ctx.unitMs);
      await ctx.expectGone("task-1", "The expired task for the second handle", second);
    },
    ["time"],
  ),
  sharedCheck(
    "sweep.seen-by-second-handle",
    "what one handle swept is not there for another to sweep",
    async (ctx, second) => {
      await ctx.store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(1.5 * ctx.unitMs);
      expectEqual(await ctx.store.sweep(), 1, "What sweep() of the first handle resolved to");
      expectEqual(await second.sweep(), 0, "What sweep() of the second handle resolved to");
    },
    ["time"],
  ),
  sharedCheck(
    "close.leaves-second-handle",
    "closing one handle leaves another as it is",
    async (ctx, second) => {
      const record = minimalRecord();
      await ctx.store.create(record);
      await second.get("task-1");
      await ctx.close();
      await ctx.expectStored(record, "The record seen by the handle that is open", second);
      await second.update("task-1", { statusMessage: "still open" }, record.version);
    },
  ),
  sharedCheck(
    "watch.hears-second-handle",
    "a watch hears of a change by another handle",
    async (ctx, second) => {
      let heard = 0;
      await ctx.store.create(minimalRecord());
      const end = await ctx.watch("task-1", () => {
        heard += 1;
      });
      await second.update("task-1", { statusMessage: "by the second handle" }, minimalRecord().version);
      await waitFor(() => heard > 0, "A hint of a change by the second handle");
      await end();
    },
    ["watch"],
  ),
  sharedCheck(
    "claim.seen-by-second-handle",
    "a task that one handle claimed is held for another",
    async (ctx, second) => {
      await ctx.store.create(minimalRecord());
      await second.get("task-1");
      const [claimed] = await ctx.leasing().claim("claimer", longLeaseMs, { limit: 1 });
      await expectClaims(ctx.leasing(second), ctx.unitMs, {}, [], "What claim() of the second handle took");
      await ctx.expectStored(
        claimed ?? minimalRecord(),
        "The claimed record seen by the second handle",
        second,
      );
    },
    ["claim"],
  ),
  sharedCheck(
    "renew.seen-by-second-handle",
    "a lease that one handle renewed is live for another",
    async (ctx, second) => {
      await ctx.store.create(heldRecord(2 * ctx.unitMs));
      const held = [{ taskId: "task-1", token: "token-of-create" }];
      expectEqual(await ctx.leasing(second).renew(held, 8 * ctx.unitMs), [], "What renew() resolved to");
      await ctx.elapse(3 * ctx.unitMs);
      await expectClaims(ctx.leasing(), ctx.unitMs, {}, [], "What claim() took of a lease renewed elsewhere");
    },
    ["claim", "time"],
  ),
];

function sharedCheck(
  id: string,
  title: string,
  run: (ctx: CheckContext, second: TaskStore) => Promise<void>,
  needs: readonly Need[] = [],
): Check {
  return defineCheck({
    id,
    rule: "C22",
    title,
    profile: "shared",
    needs: ["second", ...needs],
    run: async (ctx) => run(ctx, await ctx.second()),
  });
}
