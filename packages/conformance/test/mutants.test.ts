import { describe, expect, test } from "vitest";

import { checkTaskStore, conformanceChecks } from "../src/index.ts";
import { mutants } from "./mutants/index.ts";
import {
  ExclusiveReferenceTaskStore,
  referenceFactory,
  ReferenceTaskStore,
  type ReferenceStoreClass,
} from "./support/reference-task-store.ts";

/** Long enough for a loaded machine, short enough for the wrong stores that leave a check waiting. */
const checkDeadlineMs = 3_000;

async function failuresOf(Store: ReferenceStoreClass): Promise<string[]> {
  const report = await checkTaskStore("store", referenceFactory(Store), {
    profile: "shared",
    checkDeadlineMs,
  });
  return report.results.filter(({ outcome }) => outcome === "failed").map(({ id }) => id);
}

test.each([ReferenceTaskStore, ExclusiveReferenceTaskStore])(
  "%o is right: caught by no check",
  async (Store) => {
    const report = await checkTaskStore("store", referenceFactory(Store), { profile: "shared" });
    expect(report.results.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
  },
);

describe("each wrong store is caught by the checks it should be, and by no others", () => {
  test.concurrent.each(mutants)("$fault", async ({ Store, caughtBy }) => {
    expect((await failuresOf(Store)).toSorted()).toEqual([...caughtBy].toSorted());
  });
});

test("each check is the only one that catches some wrong store: without it that store would pass", () => {
  const indispensable = new Set(
    mutants.filter(({ caughtBy }) => caughtBy.length === 1).flatMap(({ caughtBy }) => caughtBy),
  );
  expect(conformanceChecks.map(({ id }) => id).filter((id) => !indispensable.has(id))).toEqual([]);
});
