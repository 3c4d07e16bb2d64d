import type { TaskPatch } from "@longjobs/core";

import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectRejects, expectRejectsTypeError } from "../expect.ts";
import { completedRecord, fullRecord, minimalRecord, patched, resultOfBytes } from "../records.ts";

/** What `update` promises about versions, patches and sizes. */
export const updateChecks: readonly Check[] = [
  defineCheck({
    id: "update.resolves-to-next-version",
    rule: "C8",
    title: "update() with the stored version resolves to that version plus one",
    async run({ store }) {
      const { version } = minimalRecord();
      await store.create(minimalRecord());
      for (let step = 0; step < 3; step += 1) {
        const next = await store.update("task-1", { statusMessage: `step ${step}` }, version + step);
        expectEqual(next, version + step + 1, "What update() resolved to");
      }
    },
  }),
  defineCheck({
    id: "update.applies-patch",
    rule: "C8",
    title: "update() shows the patch, one version later, in the next get()",
    async run(ctx) {
      const record = minimalRecord({ statusMessage: "before" });
      const patch = {
        statusMessage: "after",
        progress: { done: 1 },
        lastUpdatedAt: "2026-02-03T04:05:06.789Z",
      };
      await ctx.store.create(record);
      await ctx.store.update("task-1", patch, record.version);
      await ctx.expectStored(patched(record, patch), "The record after update()");
    },
  }),
  defineCheck({
    id: "update.no-change-counts",
    rule: "C8",
    title: "update() with an empty patch, or one that changes no value, adds one to the version all the same",
    async run({ store }) {
      const record = minimalRecord({ statusMessage: "same" });
      await store.create(record);
      await store.update("task-1", {}, record.version);
      expectEqual(
        (await store.get("task-1"))?.version,
        record.version + 1,
        "The version after an empty patch",
      );
      await store.update("task-1", { statusMessage: "same" }, record.version + 1);
      expectEqual(
        (await store.get("task-1"))?.version,
        record.version + 2,
        "The version after an equal value",
      );
    },
  }),
  defineCheck({
    id: "update.stale-version-rejected",
    rule: "C9",
    title: "update() with a version of the past rejects with version_conflict",
    async run({ store }) {
      const { version } = minimalRecord();
      await store.create(minimalRecord());
      await store.update("task-1", { statusMessage: "first" }, version);
      for (const stale of [version, version - 1, 0]) {
        const update = (): Promise<unknown> => store.update("task-1", { statusMessage: "second" }, stale);
        await expectRejects(update, "version_conflict", `update() with version ${stale} of ${version + 1}`);
      }
    },
  }),
  defineCheck({
    id: "update.future-version-rejected",
    rule: "C9",
    title: "update() with a version that has not been reached rejects with version_conflict",
    async run({ store }) {
      const { version } = minimalRecord();
      await store.create(minimalRecord());
      for (const future of [version + 1, version + 1_000]) {
        const update = (): Promise<unknown> => store.update("task-1", { statusMessage: "early" }, future);
        await expectRejects(update, "version_conflict", `update() with version ${future} of ${version}`);
      }
    },
  }),
  defineCheck({
    id: "update.conflict-changes-nothing",
    rule: "C9",
    title: "update() with another version leaves the record and its version as they were",
    async run(ctx) {
      const record = minimalRecord({ statusMessage: "kept" });
      await ctx.store.create(record);
      for (const other of [record.version - 1, record.version + 1]) {
        await ctx.store
          .update("task-1", { statusMessage: "lost", data: "lost" }, other)
          .catch(() => undefined);
      }
      await ctx.expectStored(record, "The record after refused updates");
    },
  }),
  defineCheck({
    id: "update.copies-the-patch",
    rule: "C6",
    title: "changing an object after it was given to update() changes nothing in the store",
    async run(ctx) {
      const record = minimalRecord();
      const checkpoint = { value: { page: 1 }, asked: {} };
      await ctx.store.create(record);
      await ctx.store.update("task-1", { checkpoint }, record.version);
      checkpoint.value.page = 2;
      await ctx.expectStored(
        patched(record, { checkpoint: { value: { page: 1 }, asked: {} } }),
        "The record after the caller changed its own object",
      );
    },
  }),
  defineCheck({
    id: "update.undefined-deletes",
    rule: "C11",
    title: "a patch value of undefined deletes the field, and one that is absent stays absent",
    async run(ctx) {
      const { statusMessage, progress, ...rest } = minimalRecord({
        statusMessage: "gone",
        progress: { done: 1 },
      });
      await ctx.store.create({ ...rest, statusMessage: statusMessage ?? "", progress: progress ?? {} });
      const patch = { statusMessage: undefined, progress: undefined, checkpoint: undefined };
      await ctx.store.update("task-1", patch, rest.version);
      await ctx.expectStored({ ...rest, version: rest.version + 1 }, "The record after deleting fields");
    },
  }),
  defineCheck({
    id: "update.null-is-a-value",
    rule: "C11",
    title: "a patch value of null is kept as null",
    async run(ctx) {
      const record = minimalRecord({ ttlMs: 10 * ctx.unitMs, retentionMs: 1_000, data: { offset: 1 } });
      const patch = { ttlMs: null, retentionMs: null, data: null };
      await ctx.store.create(record);
      await ctx.store.update("task-1", patch, record.version);
      await ctx.expectStored(patched(record, patch), "The record after setting fields to null");
    },
  }),
  defineCheck({
    id: "update.unnamed-fields-stay",
    rule: "C11",
    title: "a field that the patch does not name stays as it is",
    async run(ctx) {
      const patch = { statusMessage: "only this" };
      await ctx.store.create(fullRecord());
      const before = (await ctx.store.get("task-1")) ?? fullRecord();
      await ctx.store.update("task-1", patch, before.version);
      await ctx.expectStored(patched(before, patch), "The record after a patch of one field");
    },
  }),
  defineCheck({
    id: "update.replaces-whole-fields",
    rule: "C11",
    title: "a field that the patch names is replaced as a whole, not merged",
    async run(ctx) {
      const record = minimalRecord({
        progress: { message: "old", done: 1 },
        checkpoint: { value: [1, 2], asked: { a: 1 } },
      });
      const patch = { progress: { total: 9 }, checkpoint: { value: [3], asked: {} } };
      await ctx.store.create(record);
      await ctx.store.update("task-1", patch, record.version);
      await ctx.expectStored(patched(record, patch), "The record after replacing objects");
    },
  }),
  defineCheck({
    id: "update.own-string-keys-only",
    rule: "C11",
    title: "inherited, symbol and non-enumerable keys are no part of a patch",
    async run(ctx) {
      const record = minimalRecord();
      const patch: object = Object.create(
        { scope: "inherited" },
        { kind: { value: "hidden", enumerable: false } },
      );
      Object.assign(patch, { statusMessage: "own", [Symbol("data")]: 1 });
      await ctx.store.create(record);
      await ctx.store.update("task-1", patch, record.version);
      await ctx.expectStored(
        patched(record, { statusMessage: "own" }),
        "The record after a patch with other keys",
      );
    },
  }),
  defineCheck({
    id: "update.task-id-refused",
    rule: "C11",
    title: "a patch that names taskId rejects with TypeError and changes nothing",
    run: (ctx) => refusesPatch(ctx, { taskId: "task-2" }),
  }),
  defineCheck({
    id: "update.version-refused",
    rule: "C11",
    title: "a patch that names version rejects with TypeError and changes nothing",
    run: (ctx) => refusesPatch(ctx, { version: 99 }),
  }),
  defineCheck({
    id: "update.created-at-refused",
    rule: "C11",
    title: "a patch that names createdAt rejects with TypeError and changes nothing",
    run: (ctx) => refusesPatch(ctx, { createdAt: "2026-02-03T04:05:06.789Z" }),
  }),
  defineCheck({
    id: "update.too-large-rejects",
    rule: "C20",
    title: "update() beyond the limit rejects with record_too_large and changes nothing",
    async run(ctx) {
      const { store, maxRecordBytes } = ctx;
      const record = minimalRecord();
      await store.create(record);
      const patch = { status: "completed", result: resultOfBytes(maxRecordBytes + 1) } as const;
      const update = (): Promise<unknown> => store.update("task-1", patch, record.version);
      await expectRejects(update, "record_too_large", "update() beyond the limit");
      await ctx.expectStored(record, "The record after a refused update()");
    },
  }),
  defineCheck({
    id: "update.limit-counts-the-record",
    rule: "C20",
    title:
      "the limit holds for the whole record: fields that fit one by one are refused when their sum does not",
    async run(ctx) {
      const { store, maxRecordBytes } = ctx;
      const part = resultOfBytes(maxRecordBytes * 0.4);
      const record = completedRecord({ result: part });
      await store.create(record);
      await store.update("task-1", { data: part }, record.version);
      const third = (): Promise<unknown> =>
        store.update("task-1", { checkpoint: { value: part, asked: {} } }, record.version + 1);
      await expectRejects(third, "record_too_large", "update() that takes the record beyond the limit");
      await ctx.expectStored(patched(record, { data: part }), "The record after a refused update()");
    },
  }),
  defineCheck({
    id: "update.replaced-bytes-are-free",
    rule: "C20",
    title: "a value that was replaced or deleted no longer counts against the limit",
    async run({ store, maxRecordBytes }) {
      const part = resultOfBytes(maxRecordBytes * 0.6);
      const { version } = minimalRecord();
      await store.create(minimalRecord());
      for (const [step, data] of [part, part, undefined, part].entries()) {
        await store.update("task-1", { data }, version + step);
      }
    },
  }),
];

async function refusesPatch(ctx: Parameters<Check["run"]>[0], fields: object): Promise<void> {
  const record = minimalRecord();
  await ctx.store.create(record);
  const patch: TaskPatch = { statusMessage: "must not be kept", ...fields };
  const update = (): Promise<unknown> => ctx.store.update("task-1", patch, record.version);
  await expectRejectsTypeError(update, `update() with a patch that names ${Object.keys(fields).join()}`);
  await ctx.expectStored(record, "The record after a refused patch");
  expectEqual(await ctx.store.get("task-2"), undefined, "A record under the other id");
}
