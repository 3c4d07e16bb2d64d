import { MemoryTaskStore, type TaskStore } from "@longjobs/core";
import { expect, test } from "vitest";

import { conformanceChecks, type StoreUnderTest } from "../src/index.ts";
import { CheckRun } from "../src/run-check.ts";
import { MapTaskStore } from "./support/map-task-store.ts";

// Each check waits for real milliseconds; on stores of their own they can all wait at once.
test.each<[string, new () => TaskStore, string[]]>([
  ["five methods", MapTaskStore, ["time"]],
  ["leases", MemoryTaskStore, ["time", "claim,time"]],
])(
  "a store with %s whose clock cannot be moved passes every time check in real time",
  async (_kind, Store, kinds) => {
    const factory = (): StoreUnderTest => ({ store: new Store(), realTime: true });
    const run = new CheckRun(factory, "volatile", new Map(), 20_000);
    const timeChecks = conformanceChecks.filter(({ needs }) => kinds.includes(needs.join()));
    const verdicts = await Promise.all(timeChecks.map((check) => run.run(check)));
    expect(verdicts).toEqual(timeChecks.map(() => ({ outcome: "passed" })));
  },
);
