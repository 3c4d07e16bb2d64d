import { mutants } from "../mutants/index.ts";
import { referenceFactory } from "../support/reference-task-store.ts";

export const factory = referenceFactory(
  mutants.find(({ caughtBy }) => caughtBy.join() === "update.applies-patch")?.Store,
);
