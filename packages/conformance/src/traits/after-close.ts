import { defineCheck, type Check } from "../check.ts";
import { expectRejects } from "../expect.ts";
import { leaseCheck } from "../lease-check.ts";
import { leaseMethods, storeMethods } from "./methods.ts";

/** After `close` every method rejects with `store_closed`. */
export const afterCloseChecks: readonly Check[] = [
  ...Object.entries(storeMethods).map(([method, call]) =>
    defineCheck({
      id: `${method}.after-close-rejects`,
      rule: "C18",
      title: `${method}() after close() rejects with store_closed`,
      async run(ctx) {
        await ctx.close();
        await expectRejects(() => call(ctx.store), "store_closed", `${method}() after close()`);
      },
    }),
  ),
  defineCheck({
    id: "watch.after-close-rejects",
    rule: "C18",
    title: "watch() after close() rejects with store_closed",
    needs: ["watch"],
    async run(ctx) {
      await ctx.close();
      await expectRejects(
        () => ctx.watch("task-1", () => undefined),
        "store_closed",
        "watch() after close()",
      );
    },
  }),
  ...Object.entries(leaseMethods).map(([method, call]) =>
    leaseCheck({
      id: `${method}.after-close-rejects`,
      rule: "C18",
      title: `${method}() after close() rejects with store_closed`,
      async run(ctx, store) {
        await ctx.close();
        await expectRejects(() => call(store), "store_closed", `${method}() after close()`);
      },
    }),
  ),
];
