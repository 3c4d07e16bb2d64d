import type { TaskRecord } from "@longjobs/core";

import type { Check } from "../check.ts";
import { expectEqual, expectRejectsUsage, expectThat, tryToChange } from "../expect.ts";
import { expectClaims, leaseCheck, longLeaseMs, noLimit, release, tokenOf } from "../lease-check.ts";
import { completedRecord, fullRecord, minimalRecord, patched } from "../records.ts";

const cancelRequestedAt = "2026-01-02T03:04:05.678Z";

/** What `claim` does to the tasks it takes, and which of the claimable ones it takes. */
export const claimChecks: readonly Check[] = [
  leaseCheck({
    id: "claim.writes-the-lease",
    rule: "C26",
    title: "claim() gives a task its lease, adds one to the version, and changes nothing else",
    async run(ctx, store) {
      const { kind: _kind, lease: _lease, ...open } = fullRecord();
      await store.create(open);
      const record = (await store.get("task-1")) ?? open;
      const [claimed] = await store.claim("claimer", 12_345, { limit: 1 });
      const lease = { owner: "claimer", token: tokenOf(claimed ?? record), durationMs: 12_345 };
      await ctx.expectStored(patched(record, { lease }), "The record after claim()");
    },
  }),
  leaseCheck({
    id: "claim.resolves-to-the-records",
    rule: "C26",
    title: "claim() resolves to the records as they are after it",
    async run(ctx, store) {
      const taskIds = ["a", "b"];
      for (const taskId of taskIds) await store.create(minimalRecord({ taskId, work: { tool: "render" } }));
      const claimed = await expectClaims(store, longLeaseMs, {}, taskIds, "What claim() took");
      for (const record of claimed) await ctx.expectStored(record, "A record, against what claim() gave,");
    },
  }),
  leaseCheck({
    id: "claim.tokens-are-fresh",
    rule: "C26",
    title: "each claim of each task has a token of its own, for the same owner too",
    async run(ctx, store) {
      const taskIds = ["a", "b", "c"];
      for (const taskId of taskIds) await store.create(minimalRecord({ taskId }));
      const tokens = new Set<string>();
      for (let round = 0; round < 2; round += 1) {
        const claimed = await expectClaims(
          store,
          longLeaseMs,
          {},
          taskIds,
          "What claim() took of free tasks",
        );
        for (const record of claimed) {
          tokens.add(tokenOf(record));
          await release(store, record);
        }
      }
      expectThat(tokens.size === 6, `Six claims got ${tokens.size} different tokens.`);
    },
  }),
  leaseCheck({
    id: "claim.gives-values",
    rule: "C6",
    title: "changing a record that claim() returned changes nothing in the store",
    async run(ctx, store) {
      await store.create(minimalRecord({ progress: { done: 1 } }));
      const [given] = await store.claim("claimer", longLeaseMs, { limit: 1 });
      const before = await store.get("task-1");
      const kept = structuredClone(before ?? minimalRecord());
      tryToChange(given, "statusMessage", "changed by the claimer");
      tryToChange(given?.progress, "done", 2);
      await ctx.expectStored(kept, "The record after the claimer changed its own");
    },
  }),
  leaseCheck({
    id: "claim.respects-the-limit",
    rule: "C27",
    title: "claim() takes at most limit tasks, and as many as there are up to it",
    async run(ctx, store) {
      for (const taskId of ["x", "y", "z"]) await store.create(completedRecord({ taskId }));
      const taskIds = ["a", "b", "c", "d", "e"];
      for (const taskId of taskIds) await store.create(minimalRecord({ taskId }));
      const taken: TaskRecord[] = [];
      for (const expected of [2, 2, 1, 0]) {
        const claimed = await store.claim("claimer", longLeaseMs, { limit: 2 });
        expectEqual(claimed.length, expected, "The number of tasks that claim() with a limit of 2 took");
        taken.push(...claimed);
      }
      const ids = taken.map(({ taskId }) => taskId).toSorted();
      expectEqual(ids, taskIds, "The tasks that were claimed two by two");
    },
  }),
  leaseCheck({
    id: "claim.keeps-to-the-tools",
    rule: "C27",
    title: "claim() with tools takes tasks of these tools alone, and with none of them nothing",
    async run(ctx, store) {
      for (const tool of ["render", "crawl", "print"]) {
        await store.create(minimalRecord({ taskId: tool, work: { tool, arguments: {} } }));
      }
      await store.create(minimalRecord({ taskId: "without work" }));
      await expectClaims(store, longLeaseMs, { tools: [] }, [], "What claim() with no tools took");
      const tools = ["print", "crawl", "another"];
      await expectClaims(store, longLeaseMs, { tools }, ["crawl", "print"], "What claim() with tools took");
    },
  }),
  leaseCheck({
    id: "claim.cancelled-needs-no-tool",
    rule: "C27",
    title: "a task whose cancel was requested may be claimed whatever the tools, but not while it is held",
    async run(ctx, store) {
      const work = { tool: "render" };
      const lease = { owner: "creator", token: "token-of-create", durationMs: longLeaseMs };
      await store.create(minimalRecord({ taskId: "cancelled", work, cancelRequestedAt }));
      await store.create(minimalRecord({ taskId: "held", work, cancelRequestedAt, lease }));
      await store.create(minimalRecord({ taskId: "cancelled later", work }));
      await store.update("cancelled later", { cancelRequestedAt }, minimalRecord().version);
      const expected = ["cancelled", "cancelled later"];
      await expectClaims(
        store,
        longLeaseMs,
        { tools: ["crawl"] },
        expected,
        "What claim() took of cancelled tasks",
      );
    },
  }),
  leaseCheck({
    id: "claim.keeps-to-the-ids",
    rule: "C27",
    title: "claim() with taskIds takes these tasks alone, once each, and passes over unknown ids",
    async run(ctx, store) {
      const crawl = { work: { tool: "crawl" } };
      for (const taskId of ["a", "b", "c"]) await store.create(minimalRecord({ taskId, ...crawl }));
      await store.create(minimalRecord({ taskId: "d", work: { tool: "render" } }));
      await store.create(minimalRecord({ taskId: "e", work: { tool: "render" }, cancelRequestedAt }));
      await expectClaims(store, longLeaseMs, { taskIds: [] }, [], "What claim() with no ids took");
      const options = { taskIds: ["c", "unknown", "d", "a", "c"], tools: ["crawl"] };
      await expectClaims(store, longLeaseMs, options, ["a", "c"], "What claim() with ids and tools took");
    },
  }),
  leaseCheck({
    id: "claim.bad-arguments-refused",
    rule: "C31",
    title: "claim() with arguments that make no sense rejects with TypeError or RangeError and takes nothing",
    async run(ctx, store) {
      const record = minimalRecord();
      await store.create(record);
      for (const [owner, leaseMs, limit] of [
        ["", longLeaseMs, 1],
        ...badNumbers.map((value) => ["claimer", value, 1] as const),
        ...badNumbers.map((value) => ["claimer", longLeaseMs, value] as const),
      ] as const) {
        const subject = `claim(${JSON.stringify(owner)}, ${leaseMs}, { limit: ${limit} })`;
        await expectRejectsUsage(() => store.claim(owner, leaseMs, { limit }), subject);
      }
      await ctx.expectStored(record, "The record after refused claims");
      await expectClaims(
        store,
        longLeaseMs,
        { limit: noLimit },
        ["task-1"],
        "What claim() took after refused ones",
      );
    },
  }),
];

/** What is neither a limit nor a duration. */
export const badNumbers: readonly number[] = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY];
