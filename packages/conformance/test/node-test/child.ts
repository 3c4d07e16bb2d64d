// Run by `node --test` from the runner test: a right store, or a wrong one.
import { describe, it } from "node:test";

import { runTaskStoreConformance } from "../../src/index.ts";
import { mutants } from "../mutants/index.ts";
import { referenceFactory } from "../support/reference-task-store.ts";

const wrong = mutants.find(({ caughtBy }) => caughtBy.join() === "update.applies-patch");

if (process.env["LONGJOBS_TEST_STORE"] === "wrong") {
  runTaskStoreConformance("wrong", referenceFactory(wrong?.Store), {
    runner: { describe, it },
    profile: "shared",
  });
} else {
  runTaskStoreConformance("right", referenceFactory(), {
    runner: { describe, it, skip: it.skip },
    profile: "durable",
  });
}
