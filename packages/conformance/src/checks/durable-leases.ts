import { isExclusive } from "@longjobs/core";

import type { Check } from "../check.ts";
import { expectEqual } from "../expect.ts";
import { expectClaims, heldRecord, leaseCheck, longLeaseMs, release, tokenOf } from "../lease-check.ts";
import { minimalRecord } from "../records.ts";

const taskIds = ["claimed", "created", "renewed"];

/** What is left of leases after `close` and reopening, and after a crash. */
export const durableLeaseChecks: readonly Check[] = [
  leaseCheck({
    id: "durable.claims-survive",
    rule: "C19",
    title: "a claim is there after close() and reopening, with its token and its version",
    profile: "durable",
    needs: ["reopen"],
    async run(ctx, store) {
      await store.create(minimalRecord());
      const [claimed] = await expectClaims(store, longLeaseMs, {}, ["task-1"], "What claim() took");
      const reopened = await ctx.reopen();
      expectEqual(await reopened.get("task-1"), claimed, "The claimed record after reopening");
      await release(reopened, claimed ?? minimalRecord());
    },
  }),
  leaseCheck({
    id: "durable.crash-keeps-claims",
    rule: "C21",
    title: "a claim that was acknowledged is there after a crash: an old owner's writes stay refused",
    profile: "durable",
    needs: ["crash"],
    async run(ctx, store) {
      await store.create(minimalRecord());
      const [claimed] = await expectClaims(store, longLeaseMs, {}, ["task-1"], "What claim() took");
      const survivor = await ctx.crash();
      expectEqual(await survivor.get("task-1"), claimed, "The claimed record after a crash");
    },
  }),
  leaseCheck({
    id: "durable.leases-of-an-earlier-opening",
    rule: "C32",
    title:
      "a lease of an earlier opening has lapsed in an exclusive store, and lasts to its end in any other",
    profile: "durable",
    needs: ["reopen", "time"],
    async run(ctx, store) {
      await store.create(minimalRecord({ taskId: "claimed" }));
      await store.create(minimalRecord({ taskId: "renewed" }));
      const leaseMs = 8 * ctx.unitMs;
      await store.claim("claimer", leaseMs, { limit: 1, taskIds: ["claimed"] });
      const [short] = await store.claim("claimer", 2 * ctx.unitMs, { limit: 1, taskIds: ["renewed"] });
      await store.renew([{ taskId: "renewed", token: tokenOf(short ?? minimalRecord()) }], leaseMs);
      await store.create(heldRecord(leaseMs, { taskId: "created" }));
      const reopened = ctx.leasing(await ctx.reopen());
      if (!isExclusive(store)) {
        await ctx.elapse(3 * ctx.unitMs);
        await expectClaims(reopened, leaseMs, {}, [], "What claim() of a reopened store took of live leases");
        await ctx.elapse(6 * ctx.unitMs);
      }
      await expectClaims(
        reopened,
        leaseMs,
        {},
        taskIds,
        "What claim() of a reopened store took of lapsed leases",
      );
    },
  }),
];
