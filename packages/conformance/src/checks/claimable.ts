import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectThat } from "../expect.ts";
import { expectClaims, expectFree, heldRecord, leaseCheck } from "../lease-check.ts";
import { minimalRecord } from "../records.ts";

/** Which tasks `claim` may take: open ones that nobody holds, and what the store's clock says about that. */
export const claimableChecks: readonly Check[] = [
  defineCheck({
    id: "claim.comes-with-renew",
    rule: "C25",
    title: "a store has both of claim() and renew(), or neither",
    async run({ store }) {
      const [claim, renew] = ["claim", "renew"].map((method) => typeof Reflect.get(store, method));
      expectThat(claim === renew, `The store has one of the two: claim is ${claim}, renew is ${renew}.`);
    },
  }),
  leaseCheck({
    id: "claim.takes-the-free",
    rule: "C25",
    title: "claim() takes open tasks that nobody holds, working and waiting for input",
    async run(ctx, store) {
      await store.create(minimalRecord({ taskId: "working" }));
      await store.create(minimalRecord({ taskId: "waiting", status: "input_required" }));
      await expectClaims(
        store,
        ctx.unitMs,
        {},
        ["working", "waiting"],
        "What claim() took of two free tasks",
      );
    },
  }),
  leaseCheck({
    id: "claim.spares-the-finished",
    rule: "C25",
    title: "claim() takes no task that is terminal, from its birth or by an update",
    async run(ctx, store) {
      for (const status of ["completed", "failed", "cancelled"] as const) {
        const fields = { status, cancelRequestedAt: "2026-01-02T03:04:05.678Z" };
        await store.create(minimalRecord({ taskId: `born ${status}`, ...fields }));
        const open = minimalRecord({ taskId: status });
        await store.create(open);
        await store.update(status, fields, open.version);
      }
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of finished tasks");
    },
  }),
  leaseCheck({
    id: "claim.spares-other-kinds",
    rule: "C25",
    title: "claim() takes no record that has a kind: it is no task",
    async run(ctx, store) {
      await store.create(minimalRecord({ kind: "transfer", data: { offset: 1 } }));
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of a record of another kind");
    },
  }),
  leaseCheck({
    id: "claim.spares-the-expired",
    rule: "C25",
    title: "claim() takes no task that has expired",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(minimalRecord({ ttlMs: ctx.unitMs }));
      await ctx.elapse(1.5 * ctx.unitMs);
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of an expired task");
      expectEqual(await store.get("task-1"), undefined, "The expired task after claim()");
    },
  }),
  leaseCheck({
    id: "claim.spares-live-leases",
    rule: "C25",
    title: "claim() takes no task while its lease is younger than its duration",
    needs: ["time"],
    async run(ctx, store) {
      const record = heldRecord(5 * ctx.unitMs);
      await store.create(record);
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of a task that was leased just now");
      await ctx.elapseAlmost(5 * ctx.unitMs);
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of a task before its lease ended");
      await ctx.expectStored(record, "The task whose lease is live");
    },
  }),
  leaseCheck({
    id: "claim.takes-lapsed-leases",
    rule: "C25",
    title: "claim() takes a task when its lease has reached its duration",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(ctx.unitMs));
      await ctx.elapse(ctx.unitMs);
      await expectFree(ctx, store, ctx.unitMs, "A task whose lease has lapsed");
    },
  }),
  leaseCheck({
    id: "claim.patch-sets-the-deadline",
    rule: "C25",
    title: "a patch with a lease, an equal one too, counts its duration from the update",
    needs: ["time"],
    async run(ctx, store) {
      const record = heldRecord(3 * ctx.unitMs);
      await store.create(record);
      await ctx.elapse(2 * ctx.unitMs);
      await store.update("task-1", { lease: record.lease }, record.version);
      await ctx.elapse(2 * ctx.unitMs);
      await expectClaims(
        store,
        ctx.unitMs,
        {},
        [],
        "What claim() took of a task whose lease was written anew",
      );
    },
  }),
  leaseCheck({
    id: "claim.other-patches-keep-the-deadline",
    rule: "C25",
    title: "a patch without a lease does not put off the end of the lease",
    needs: ["time"],
    async run(ctx, store) {
      const record = heldRecord(3 * ctx.unitMs);
      await store.create(record);
      await ctx.elapse(2 * ctx.unitMs);
      await store.update("task-1", { progress: { done: 1 } }, record.version);
      await ctx.elapse(1.5 * ctx.unitMs);
      await expectFree(ctx, store, ctx.unitMs, "A task that was written, but not leased anew");
    },
  }),
  leaseCheck({
    id: "claim.deleted-lease-is-free",
    rule: "C25",
    title: "a task whose lease a patch deleted is free at once",
    async run(ctx, store) {
      const record = heldRecord(100 * ctx.unitMs);
      await store.create(record);
      await store.update("task-1", { lease: undefined }, record.version);
      await expectClaims(store, ctx.unitMs, {}, ["task-1"], "What claim() took of a task that was released");
    },
  }),
  leaseCheck({
    id: "claim.sets-the-deadline",
    rule: "C25",
    title: "a claim holds a task for the leaseMs it was given, whatever the lease before",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(ctx.unitMs));
      await ctx.elapse(1.5 * ctx.unitMs);
      await expectFree(ctx, store, 4 * ctx.unitMs, "A task whose lease has lapsed");
      await ctx.elapse(2 * ctx.unitMs);
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of a task that another claim holds");
      await ctx.elapse(2.5 * ctx.unitMs);
      await expectFree(ctx, store, ctx.unitMs, "A task whose claim has lapsed");
    },
  }),
  leaseCheck({
    id: "claim.reborn-is-free",
    rule: "C23",
    title: "a task created anew after an expiry has no lease of the old one",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(100 * ctx.unitMs, { ttlMs: ctx.unitMs }));
      await ctx.elapse(1.5 * ctx.unitMs);
      await store.create(minimalRecord({ version: 2_000_000 }));
      await expectClaims(store, ctx.unitMs, {}, ["task-1"], "What claim() took of a task created anew");
    },
  }),
];
