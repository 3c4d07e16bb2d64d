import type { Check } from "../check.ts";
import { expectEqual, expectRejectsUsage } from "../expect.ts";
import {
  expectClaims,
  expectFree,
  heldRecord,
  leaseCheck,
  longLeaseMs,
  release,
  tokenOf,
} from "../lease-check.ts";
import { minimalRecord } from "../records.ts";
import { badNumbers } from "./claim.ts";

const held = { taskId: "task-1", token: "token-of-create" };

/** What `renew` promises to who holds a lease, and what it says to who lost one. */
export const renewChecks: readonly Check[] = [
  leaseCheck({
    id: "renew.moves-the-deadline",
    rule: "C29",
    title: "renew() with the token holds the task for leaseMs from now",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(4 * ctx.unitMs));
      await ctx.elapse(3 * ctx.unitMs);
      expectEqual(await store.renew([held], 4 * ctx.unitMs), [], "What renew() of a held lease resolved to");
      await ctx.elapse(2.5 * ctx.unitMs);
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of a task whose lease was renewed");
    },
  }),
  leaseCheck({
    id: "renew.may-shorten",
    rule: "C29",
    title: "renew() to a shorter duration brings the end nearer",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(100 * ctx.unitMs));
      await store.renew([held], ctx.unitMs);
      await ctx.elapse(1.5 * ctx.unitMs);
      await expectFree(ctx, store, ctx.unitMs, "A task whose lease was shortened");
    },
  }),
  leaseCheck({
    id: "renew.changes-no-record",
    rule: "C29",
    title: "renew() leaves the record, its version and the durationMs of its lease as they are",
    async run(ctx, store) {
      const record = heldRecord(4 * ctx.unitMs);
      await store.create(record);
      await store.renew([held], 7 * ctx.unitMs);
      await ctx.expectStored(record, "The record after renew()");
    },
  }),
  leaseCheck({
    id: "renew.other-kinds-too",
    rule: "C29",
    title: "renew() of a record that has a kind holds it as it holds a task",
    async run(ctx, store) {
      await store.create(heldRecord(ctx.unitMs, { kind: "transfer", data: { offset: 1 } }));
      expectEqual(await store.renew([held], longLeaseMs), [], "What renew() of another kind resolved to");
    },
  }),
  leaseCheck({
    id: "renew.revives-the-lapsed",
    rule: "C29",
    title: "renew() of a lease that lapsed and that nobody took holds the task again",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(ctx.unitMs));
      await ctx.elapse(2 * ctx.unitMs);
      expectEqual(
        await store.renew([held], 4 * ctx.unitMs),
        [],
        "What renew() of a lapsed lease resolved to",
      );
      await expectClaims(store, ctx.unitMs, {}, [], "What claim() took of a task whose lease was revived");
    },
  }),
  leaseCheck({
    id: "renew.wrong-token-is-lost",
    rule: "C30",
    title: "renew() with another token, or of a task without a lease, is lost and holds nothing",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(ctx.unitMs));
      await store.create(minimalRecord({ taskId: "free" }));
      const wrong = ["task-1", "free"].map((taskId) => ({ taskId, token: "another" }));
      const lost = await store.renew(wrong, 100 * ctx.unitMs);
      expectEqual(lost.toSorted(), ["free", "task-1"], "What renew() with wrong tokens resolved to");
      await ctx.elapse(1.5 * ctx.unitMs);
      await expectFree(ctx, store, ctx.unitMs, "A task that was renewed with a wrong token");
    },
  }),
  leaseCheck({
    id: "renew.old-token-is-lost",
    rule: "C30",
    title: "renew() with the token of an earlier claim is lost, for the same owner too",
    async run(_ctx, store) {
      await store.create(minimalRecord());
      const [first] = await expectClaims(store, longLeaseMs, {}, ["task-1"], "What claim() took");
      const record = first ?? minimalRecord();
      await release(store, record);
      const old = { taskId: "task-1", token: tokenOf(record) };
      expectEqual(
        await store.renew([old], longLeaseMs),
        ["task-1"],
        "What renew() after a release resolved to",
      );
      await expectClaims(store, longLeaseMs, {}, ["task-1"], "What claim() took after the release");
      expectEqual(
        await store.renew([old], longLeaseMs),
        ["task-1"],
        "What renew() with an old token resolved to",
      );
    },
  }),
  leaseCheck({
    id: "renew.finished-is-lost",
    rule: "C30",
    title: "renew() of a task that became terminal is lost, even if its lease was left in the record",
    async run(ctx, store) {
      for (const status of ["completed", "failed", "cancelled"] as const) {
        const record = heldRecord(100 * ctx.unitMs, { taskId: status });
        await store.create(record);
        await store.update(status, { status }, record.version);
        const lost = await store.renew([{ ...held, taskId: status }], ctx.unitMs);
        expectEqual(lost, [status], `What renew() of a ${status} task resolved to`);
      }
    },
  }),
  leaseCheck({
    id: "renew.unknown-is-lost",
    rule: "C30",
    title: "renew() of an unknown id is lost, and of no lease at all resolves to no id",
    async run(ctx, store) {
      expectEqual(
        await store.renew([held], ctx.unitMs),
        ["task-1"],
        "What renew() of an unknown id resolved to",
      );
      expectEqual(await store.renew([], ctx.unitMs), [], "What renew() of no lease resolved to");
    },
  }),
  leaseCheck({
    id: "renew.expired-is-lost",
    rule: "C30",
    title: "renew() of a task that has expired is lost, and does not bring it back",
    needs: ["time"],
    async run(ctx, store) {
      await store.create(heldRecord(100 * ctx.unitMs, { ttlMs: ctx.unitMs }));
      await ctx.elapse(1.5 * ctx.unitMs);
      expectEqual(
        await store.renew([held], ctx.unitMs),
        ["task-1"],
        "What renew() of an expired task resolved to",
      );
      expectEqual(await store.get("task-1"), undefined, "The expired task after renew()");
    },
  }),
  leaseCheck({
    id: "renew.lost-ones-spare-others",
    rule: "C30",
    title: "renew() of many leases resolves to the ids of the lost ones alone, and renews the others",
    needs: ["time"],
    async run(ctx, store) {
      const taskIds = ["a", "b", "c", "d"];
      for (const taskId of taskIds) await store.create(minimalRecord({ taskId }));
      const claimed = await expectClaims(store, 3 * ctx.unitMs, {}, taskIds, "What claim() took");
      const leases = claimed.map((record) => ({ taskId: record.taskId, token: tokenOf(record) }));
      await store.update("b", { lease: undefined }, minimalRecord().version + 1);
      await ctx.elapse(2 * ctx.unitMs);
      const lost = await store.renew([...leases, { ...held, taskId: "unknown" }], 3 * ctx.unitMs);
      expectEqual(lost.toSorted(), ["b", "unknown"], "What renew() of five leases, two lost, resolved to");
      await ctx.elapse(2 * ctx.unitMs);
      await expectClaims(store, ctx.unitMs, {}, ["b"], "What claim() took beside renewed leases");
    },
  }),
  leaseCheck({
    id: "renew.bad-arguments-refused",
    rule: "C31",
    title:
      "renew() with a duration that makes no sense rejects with TypeError or RangeError and moves nothing",
    async run(ctx, store) {
      await store.create(heldRecord(100 * ctx.unitMs));
      for (const leaseMs of badNumbers) {
        await expectRejectsUsage(() => store.renew([held], leaseMs), `renew(…, ${leaseMs})`);
      }
      await expectClaims(
        store,
        ctx.unitMs,
        {},
        [],
        "What claim() took of a held task after refused renewals",
      );
    },
  }),
];
