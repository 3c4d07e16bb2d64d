import type { ClaimOptions, LeasingTaskStore, TaskRecord, TaskStore } from "@longjobs/core";

import type { CheckContext } from "./check-context.ts";
import { defineCheck, type Check } from "./check.ts";
import { expectEqual, expectThat } from "./expect.ts";
import { minimalRecord } from "./records.ts";

/** A store whose capability to lease is known. */
export type LeasingStore = TaskStore & LeasingTaskStore;

/** Far more than any check creates. */
export const noLimit = 100;

/** Longer than any check takes, in real time too. */
export const longLeaseMs = 3_600_000;

/** A check of `claim` and `renew`, on a store that has them. */
export function leaseCheck(
  check: Pick<Check, "id" | "rule" | "title"> &
    Partial<Pick<Check, "profile" | "needs">> & {
      readonly run: (ctx: CheckContext, store: LeasingStore) => Promise<void>;
    },
): Check {
  return defineCheck({
    ...check,
    // First: a store without leases has no need of what else the check asks for.
    needs: ["claim", ...(check.needs ?? [])],
    run: (ctx) => check.run(ctx, ctx.leasing()),
  });
}

/** An open task that is held for this long from its creation, by an owner that no check claims for. */
export function heldRecord(durationMs: number, fields: Partial<TaskRecord> = {}): TaskRecord {
  return minimalRecord({ lease: { owner: "creator", token: "token-of-create", durationMs }, ...fields });
}

/** Fails unless a claim takes exactly these tasks, in whatever order; resolves to them in that of the ids. */
export async function expectClaims(
  store: LeasingStore,
  leaseMs: number,
  options: Partial<ClaimOptions>,
  taskIds: readonly string[],
  subject: string,
): Promise<TaskRecord[]> {
  const claimed = await store.claim("claimer", leaseMs, { limit: noLimit, ...options });
  expectEqual(claimed.map(({ taskId }) => taskId).toSorted(), taskIds.toSorted(), subject);
  return claimed.toSorted((left, right) => taskIds.indexOf(left.taskId) - taskIds.indexOf(right.taskId));
}

/** Fails unless task-1 can be claimed now; in real time it may take a moment. Resolves to the record. */
export async function expectFree(
  ctx: CheckContext,
  store: LeasingStore,
  leaseMs: number,
  subject: string,
): Promise<TaskRecord> {
  let claimed: readonly TaskRecord[] = [];
  await ctx.expectNow(async () => {
    claimed = await store.claim("claimer", leaseMs, { limit: noLimit, taskIds: ["task-1"] });
    return claimed.length > 0;
  }, subject);
  const [record] = claimed;
  expectThat(record !== undefined && claimed.length === 1, `${subject}: one claim took it more than once.`);
  return record;
}

/** The token of a record that is held. */
export function tokenOf(record: TaskRecord): string {
  const token: unknown = record.lease?.token;
  expectThat(typeof token === "string" && token !== "", "A claimed record has no lease with a token.");
  return token;
}

/** Ends the lease of a claimed record, as its owner does; resolves to the new version. */
export function release(store: TaskStore, { taskId, version }: TaskRecord): Promise<number> {
  return store.update(taskId, { lease: undefined }, version);
}
