import { isLongJobsError, type TaskRecord, type TaskStore } from "@longjobs/core";

import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check } from "../check.ts";
import { describeError, expectEqual, expectThat } from "../expect.ts";
import { minimalRecord, patched } from "../records.ts";

const numbers = Array.from({ length: 10 }, (_, index) => index);

/** What a store shows while its backend fails, and afterwards. */
export const faultChecks: readonly Check[] = [
  faultCheck(
    "fault.writes-reject-with-a-code",
    "a write that the failing backend does not take rejects with store_unavailable or no_space",
    async (ctx) => {
      const written = await writeDuringFault(ctx);
      for (const { reason } of written) {
        const coded = isLongJobsError(reason, "store_unavailable") || isLongJobsError(reason, "no_space");
        expectThat(
          reason === undefined || coded,
          `A write while the backend fails must reject with store_unavailable or no_space, not with ${describeError(reason)}.`,
        );
      }
      expectThat(
        written.some(({ reason }) => reason !== undefined),
        "fault() is no evidence: every write succeeded while it lasted.",
      );
    },
  ),
  faultCheck(
    "fault.writes-happened-or-not",
    "after a failure each write is there as a whole or not at all; acknowledged ones are, no_space ones are not",
    async (ctx) => {
      const written = await writeDuringFault(ctx);
      for (const { taskId, before, after, reason } of written) {
        const found = await ctx.store.get(taskId);
        const happened = found?.version === after.version;
        expectEqual(found, happened ? after : before, `${taskId} after a write while the backend failed`);
        expectThat(happened || reason !== undefined, `The acknowledged write of ${taskId} is gone.`);
        expectThat(
          !happened || !isLongJobsError(reason, "no_space"),
          `A write of ${taskId} that rejected with no_space is there.`,
        );
      }
    },
  ),
  faultCheck(
    "fault.reads-tell-the-truth",
    "a read while the backend fails shows the record or rejects with store_unavailable; it never looks unknown",
    async (ctx) => {
      const record = minimalRecord();
      await ctx.store.create(record);
      const repair = await ctx.fault();
      const reads = await Promise.allSettled(numbers.map(() => ctx.store.get("task-1")));
      await repair();
      for (const read of reads) {
        if (read.status === "fulfilled") expectEqual(read.value, record, "A read while the backend failed");
        else {
          expectThat(
            isLongJobsError(read.reason, "store_unavailable"),
            `A read while the backend fails must reject with store_unavailable, not with ${describeError(read.reason)}.`,
          );
        }
      }
      await ctx.expectStored(record, "The record after the failure");
    },
  ),
  faultCheck(
    "fault.goes-on-afterwards",
    "when the backend works again the store does too, at the latest when it is opened again",
    async (ctx) => {
      await writeDuringFault(ctx);
      const record = minimalRecord({ taskId: "afterwards" });
      const refused = await ctx.store.create(record).then(
        () => false,
        (error: unknown) => isLongJobsError(error, "store_unavailable") && ctx.has("reopen"),
      );
      const store = refused ? await ctx.reopen() : ctx.store;
      if (refused) await store.create(minimalRecord({ taskId: "once more" }));
      else await ctx.expectStored(record, "The record that was created after the failure");
    },
  ),
];

function faultCheck(id: string, title: string, run: Check["run"]): Check {
  return defineCheck({ id, rule: "C33", title, needs: ["fault"], run });
}

interface Written {
  readonly taskId: string;
  readonly before: TaskRecord | undefined;
  readonly after: TaskRecord;
  /** Why the write rejected; `undefined` when it was acknowledged. */
  readonly reason: unknown;
}

/** Creates and updates while the backend fails; resolves when it has been repaired. */
async function writeDuringFault(ctx: CheckContext): Promise<Written[]> {
  const existing = numbers.map((index) => minimalRecord({ taskId: `existing-${index}` }));
  for (const record of existing) await ctx.store.create(record);
  const repair = await ctx.fault();
  const written = await Promise.all([
    ...numbers.map((index) => createOne(ctx.store, minimalRecord({ taskId: `new-${index}` }))),
    ...existing.map((record) => updateOne(ctx.store, record)),
  ]);
  await repair();
  return written;
}

async function createOne(store: TaskStore, after: TaskRecord): Promise<Written> {
  const reason = await reasonOf(store.create(after));
  return { taskId: after.taskId, before: undefined, after, reason };
}

async function updateOne(store: TaskStore, before: TaskRecord): Promise<Written> {
  const patch = { statusMessage: "during the failure", progress: { done: 1 } };
  const reason = await reasonOf(store.update(before.taskId, patch, before.version));
  return { taskId: before.taskId, before, after: patched(before, patch), reason };
}

function reasonOf(write: Promise<unknown>): Promise<unknown> {
  return write.then(
    () => undefined,
    (reason: unknown) => reason ?? new Error("A write rejected without a reason."),
  );
}
