import { isLongJobsError, type TaskRecord, type TaskStore } from "@longjobs/core";

import { expectEqual, expectThat } from "./expect.ts";

/** A create whose outcome a check follows, and what is known of it. */
export interface Flight {
  readonly record: TaskRecord;
  /** `unknown`: under way, or it rejected with `store_unavailable`. */
  outcome: "unknown" | "acknowledged" | "refused";
}

/** Starts a create of each record without waiting. */
export function launchCreates(store: TaskStore, records: readonly TaskRecord[]): Flight[] {
  return records.map((record) => {
    const flight: Flight = { record, outcome: "unknown" };
    store.create(record).then(
      () => {
        flight.outcome = "acknowledged";
      },
      (error: unknown) => {
        if (!isLongJobsError(error, "store_unavailable")) flight.outcome = "refused";
      },
    );
    return flight;
  });
}

/** Fails unless the record is there as a whole or not at all, and as its outcome says. `event`: what came between. */
export async function expectPossible(
  { record, outcome }: Flight,
  store: TaskStore,
  event: string,
): Promise<void> {
  const found = await store.get(record.taskId);
  if (found !== undefined) expectEqual(found, record, `A record whose create() was under way at ${event}`);
  expectThat(
    outcome !== "acknowledged" || found !== undefined,
    `The acknowledged ${record.taskId} is gone after ${event}.`,
  );
  expectThat(
    outcome !== "refused" || found === undefined,
    `The refused ${record.taskId} is there after ${event}.`,
  );
}
