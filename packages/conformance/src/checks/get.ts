import { defineCheck, type Check } from "../check.ts";
import { expectEqual, tryToChange } from "../expect.ts";
import { minimalRecord } from "../records.ts";

/** Ids that look like something to a path, a pattern, an object or a database. */
const strangeIds: readonly string[] = [
  "",
  " ",
  ".",
  "..",
  "../task-1",
  "task-1/",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "%",
  "task-_",
  "task-?",
  "*",
  "task:1",
  "task\n1",
  "task\u0000",
  "\uD800",
  "задача-1",
  "x".repeat(300),
];

/** What `get` promises. */
export const getChecks: readonly Check[] = [
  defineCheck({
    id: "get.unknown-is-undefined",
    rule: "C4",
    title: "get() of an unknown id resolves to undefined, whatever the id looks like",
    async run({ store }) {
      await store.create(minimalRecord());
      for (const taskId of ["task-2", ...strangeIds]) {
        expectEqual(
          await store.get(taskId),
          undefined,
          `get() of the unknown id ${JSON.stringify(taskId.slice(0, 40))}`,
        );
      }
    },
  }),
  defineCheck({
    id: "get.compares-ids-exactly",
    rule: "C4",
    title: "ids that differ in case, white space or Unicode form are different ids",
    async run({ store }) {
      await store.create(minimalRecord({ taskId: "Tâche-1" }));
      for (const taskId of ["tâche-1", "TÂCHE-1", "Tâche-1 ", " Tâche-1", "Ta\u0302che-1", "Tâche-01"]) {
        expectEqual(
          await store.get(taskId),
          undefined,
          `get() of ${JSON.stringify(taskId)} when "Tâche-1" exists`,
        );
      }
    },
  }),
  defineCheck({
    id: "get.gives-values",
    rule: "C6",
    title: "changing a record that get() returned changes nothing in the store",
    async run(ctx) {
      const record = minimalRecord({ progress: { done: 1 } });
      await ctx.store.create(record);
      const given = await ctx.store.get("task-1");
      tryToChange(given, "statusMessage", "changed by a reader");
      tryToChange(given?.progress, "done", 2);
      await ctx.expectStored(record, "The record after a reader changed its own");
    },
  }),
  defineCheck({
    id: "get.writes-nothing",
    rule: "C15",
    title: "get() leaves the record and its version as they are",
    async run(ctx) {
      const record = minimalRecord();
      await ctx.store.create(record);
      for (let reads = 0; reads < 3; reads += 1) await ctx.store.get("task-1");
      await ctx.expectStored(record, "The record after three reads");
    },
  }),
];
