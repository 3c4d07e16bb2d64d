import { expect, test } from "vitest";

import { conformanceChecks } from "../src/index.ts";
import { CheckRun } from "../src/run-check.ts";
import { MapTaskStore } from "./support/map-task-store.ts";

// Each check waits for real milliseconds; on stores of their own they can all wait at once.
test("a store whose clock cannot be moved passes every time check in real time", async () => {
  const run = new CheckRun(
    () => ({ store: new MapTaskStore(), realTime: true }),
    "volatile",
    new Map(),
    20_000,
  );
  const timeChecks = conformanceChecks.filter(({ needs }) => needs.join() === "time");
  const verdicts = await Promise.all(timeChecks.map((check) => run.run(check)));
  expect(verdicts).toEqual(timeChecks.map(() => ({ outcome: "passed" })));
});
