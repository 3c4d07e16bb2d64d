import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectRejects } from "../expect.ts";
import { minimalRecord } from "../records.ts";
import { storeMethods } from "./methods.ts";

/** A write to an id that nobody created. That `get` resolves to `undefined` is with its other checks. */
export const unknownIdChecks: readonly Check[] = [
  defineCheck({
    id: "update.unknown-id-rejects",
    rule: "C10",
    title: "update() of an unknown id rejects with unknown_task",
    async run({ store }) {
      await store.create(minimalRecord({ taskId: "another" }));
      await expectRejects(() => storeMethods.update(store), "unknown_task", "update() of an unknown id");
    },
  }),
  defineCheck({
    id: "update.unknown-id-creates-nothing",
    rule: "C10",
    title: "update() of an unknown id creates no record",
    async run({ store }) {
      await storeMethods.update(store).catch(() => undefined);
      expectEqual(await store.get("task-1"), undefined, "The record after update() of an unknown id");
    },
  }),
];
