import type { TaskRecord } from "@longjobs/core";

import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectRejects } from "../expect.ts";
import { completedRecord, fullRecord, minimalRecord, patched, resultOfBytes, statuses } from "../records.ts";

/** What `create` promises. */
export const createChecks: readonly Check[] = [
  defineCheck({
    id: "create.round-trip",
    rule: "C1",
    title: "create() keeps every field of the record",
    async run(ctx) {
      const record = fullRecord();
      await ctx.store.create(record);
      await ctx.expectStored(record, "The record after create()");
    },
  }),
  defineCheck({
    id: "create.adds-nothing",
    rule: "C1",
    title: "create() adds no field to a record that has only the required ones, whatever its status",
    async run(ctx) {
      for (const status of statuses) {
        const record = minimalRecord({ taskId: status, status });
        await ctx.store.create(record);
        await ctx.expectStored(record, `The ${status} record after create()`);
      }
    },
  }),
  defineCheck({
    id: "create.keeps-unknown-fields",
    rule: "C1",
    title: "create() keeps fields that a later version of the contract may add",
    async run(ctx) {
      const record = { ...minimalRecord(), laterField: { nested: [1, "two"] } };
      await ctx.store.create(record);
      await ctx.expectStored(record, "The record after create()");
    },
  }),
  defineCheck({
    id: "create.undefined-is-absent",
    rule: "C1",
    title: "a field of undefined in create() is a field that is absent",
    async run(ctx) {
      const record = minimalRecord();
      const withUndefined: object = { ...record, statusMessage: undefined, checkpoint: undefined };
      await ctx.store.create(withUndefined as TaskRecord);
      await ctx.expectStored(record, "The record after create() with fields of undefined");
    },
  }),
  defineCheck({
    id: "create.existing-id-rejects",
    rule: "C2",
    title: "create() with the id of a task that lives rejects with task_exists, whatever its status",
    async run({ store }) {
      for (const existing of [minimalRecord(), completedRecord({ taskId: "task-2" })]) {
        await store.create(existing);
        const again = minimalRecord({ taskId: existing.taskId, version: 7 });
        await expectRejects(() => store.create(again), "task_exists", "create() with a taken id");
      }
    },
  }),
  defineCheck({
    id: "create.existing-id-changes-nothing",
    rule: "C2",
    title: "create() with a taken id leaves the record that has it as it was",
    async run(ctx) {
      const record = minimalRecord({ statusMessage: "first", data: "first" });
      await ctx.store.create(record);
      const again = minimalRecord({ version: 7, statusMessage: "second", data: "second" });
      await ctx.store.create(again).catch(() => undefined);
      await ctx.expectStored(record, "The record after a second create()");
    },
  }),
  defineCheck({
    id: "create.copies-the-record",
    rule: "C6",
    title: "changing an object after it was given to create() changes nothing in the store",
    async run(ctx) {
      const checkpoint = { value: { page: 1 }, asked: {} };
      const record = minimalRecord({ checkpoint });
      await ctx.store.create(record);
      checkpoint.value.page = 2;
      await ctx.expectStored(
        { ...record, checkpoint: { value: { page: 1 }, asked: {} } },
        "The record after the caller changed its own object",
      );
    },
  }),
  defineCheck({
    id: "create.keeps-any-version",
    rule: "C12",
    title: "create() keeps the version it is given: 0, 1, and the largest 31-bit number",
    async run(ctx) {
      for (const version of [0, 1, 2 ** 31 - 1]) {
        const record = minimalRecord({ taskId: `task-${version}`, version });
        await ctx.store.create(record);
        await ctx.expectStored(record, `The record created at version ${version}`);
      }
    },
  }),
  defineCheck({
    id: "create.reserved-ids",
    rule: "C4",
    title: "a record is kept under an id with a dot, apart from those whose ids differ in the dot alone",
    async run(ctx) {
      const reserved = minimalRecord({ taskId: "longjobs.reserved-1", kind: "reserved", data: 1 });
      await ctx.store.create(reserved);
      for (const taskId of ["longjobs-reserved-1", "longjobs_reserved-1"]) {
        const task = minimalRecord({ taskId });
        await ctx.store.create(task);
        await ctx.expectStored(task, `The record ${taskId}, which differs in the dot alone`);
      }
      const patch = { data: 2 };
      await ctx.store.update(reserved.taskId, patch, reserved.version);
      await ctx.expectStored(patched(reserved, patch), "The record under the id with a dot");
    },
  }),
  defineCheck({
    id: "create.too-large-rejects",
    rule: "C20",
    title: "create() of a record beyond the limit rejects with record_too_large and creates nothing",
    async run({ store, maxRecordBytes }) {
      const record = completedRecord({ result: resultOfBytes(maxRecordBytes + 1) });
      await expectRejects(() => store.create(record), "record_too_large", "create() beyond the limit");
      expectEqual(await store.get("task-1"), undefined, "The record after a refused create()");
    },
  }),
  defineCheck({
    id: "create.large-is-kept",
    rule: "C20",
    title: "create() keeps a record of three quarters of the limit",
    async run(ctx) {
      const record = completedRecord({ result: resultOfBytes(ctx.maxRecordBytes * 0.75) });
      await ctx.store.create(record);
      await ctx.expectStored(record, "The large record");
    },
  }),
];
