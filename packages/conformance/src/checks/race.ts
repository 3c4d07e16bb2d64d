import type { TaskStore } from "@longjobs/core";

import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check } from "../check.ts";
import { describeError, expectEqual, expectThat } from "../expect.ts";
import { expectPossibleHistory, TaskHistory } from "../history.ts";
import { minimalRecord, patched } from "../records.ts";
import { nextTurn } from "../wait.ts";
import { isLongJobsError, type LongJobsErrorCode } from "@longjobs/core";

const contenders = Array.from({ length: 12 }, (_, index) => index);
const rounds = 3;

/** What holds when calls run at once on one handle. */
export const raceChecks: readonly Check[] = [
  defineCheck({
    id: "race.one-creator",
    rule: "C3",
    title: "of parallel create() calls with one id exactly one resolves, and the record is the winner's",
    async run({ store }) {
      for (let round = 0; round < rounds; round += 1) await raceToCreate([store], `task-${round}`);
    },
  }),
  defineCheck({
    id: "race.one-creator-after-expiry",
    rule: "C3",
    title: "of parallel create() calls with the id of an expired task exactly one resolves",
    needs: ["time"],
    async run(ctx) {
      const ids = Array.from({ length: rounds }, (_, round) => `task-${round}`);
      for (const taskId of ids) await ctx.store.create(minimalRecord({ taskId, ttlMs: ctx.unitMs }));
      await ctx.elapse(1.5 * ctx.unitMs);
      for (const taskId of ids) await raceToCreate([ctx.store], taskId);
    },
  }),
  defineCheck({
    id: "race.one-writer",
    rule: "C13",
    title: "of parallel update() calls with one version exactly one resolves, and the losers change nothing",
    async run({ store }) {
      for (let round = 0; round < rounds; round += 1) await raceToUpdate([store], `task-${round}`);
    },
  }),
  defineCheck({
    id: "race.no-half-states",
    rule: "C14",
    title: "a reader sees all of an update or nothing of it",
    run: readersSeeWholeUpdates,
  }),
  defineCheck({
    id: "race.reads-follow-writes",
    rule: "C15",
    title: "reads and writes at once are in one order: each version has one writer, and no read goes back",
    async run({ store }) {
      await runHistory([store]);
    },
  }),
  defineCheck({
    id: "race.sweep-spares-the-reborn",
    rule: "C17",
    title: "a sweep() beside a create() of the expired id does not take the new record",
    needs: ["time"],
    async run(ctx) {
      const ids = contenders.map((index) => `task-${index}`);
      for (const taskId of ids) await ctx.store.create(minimalRecord({ taskId, ttlMs: ctx.unitMs }));
      await ctx.elapse(1.5 * ctx.unitMs);
      const reborn = ids.map((taskId) => minimalRecord({ taskId, version: 2_000_000 }));
      await Promise.all([
        ctx.store.sweep(),
        ...reborn.map((record) => ctx.store.create(record)),
        ctx.store.sweep(),
      ]);
      for (const record of reborn) await ctx.expectStored(record, "The new record after a parallel sweep()");
    },
  }),
];

/** The same races between two handles. */
export const sharedRaceChecks: readonly Check[] = [
  defineCheck({
    id: "race.one-creator-of-two-handles",
    rule: "C22",
    title: "of parallel create() calls with one id by two handles exactly one resolves",
    profile: "shared",
    needs: ["second"],
    async run(ctx) {
      const second = await ctx.second();
      for (let round = 0; round < rounds; round += 1)
        await raceToCreate([ctx.store, second], `task-${round}`);
    },
  }),
  defineCheck({
    id: "race.one-writer-of-two-handles",
    rule: "C22",
    title: "of parallel update() calls with one version by two handles exactly one resolves",
    profile: "shared",
    needs: ["second"],
    async run(ctx) {
      const second = await ctx.second();
      for (let round = 0; round < rounds; round += 1)
        await raceToUpdate([ctx.store, second], `task-${round}`);
    },
  }),
  defineCheck({
    id: "race.reads-follow-writes-of-two-handles",
    rule: "C22",
    title: "reads and writes of two handles at once are in one order",
    profile: "shared",
    needs: ["second"],
    async run(ctx) {
      await runHistory([ctx.store, await ctx.second()]);
    },
  }),
];

async function raceToCreate(stores: readonly TaskStore[], taskId: string): Promise<void> {
  const records = contenders.map((index) =>
    minimalRecord({ taskId, version: 2_000_000 + 100 * index, statusMessage: `creator ${index}` }),
  );
  const winner = await soleWinner(
    records.map((record, index) => pick(stores, index).create(record)),
    "task_exists",
    "create()",
  );
  for (const store of stores)
    expectEqual(await store.get(taskId), records[winner], "The record after the race");
}

async function raceToUpdate(stores: readonly TaskStore[], taskId: string): Promise<void> {
  const record = minimalRecord({ taskId });
  await pick(stores, 0).create(record);
  const patches = contenders.map((index) => ({
    statusMessage: `writer ${index}`,
    progress: { done: index },
  }));
  const winner = await soleWinner(
    patches.map((patch, index) => pick(stores, index).update(taskId, patch, record.version)),
    "version_conflict",
    "update()",
  );
  const expected = patched(record, patches[winner] ?? {});
  for (const store of stores) expectEqual(await store.get(taskId), expected, "The record after the race");
}

/** The index of the one call that resolved; fails unless the others rejected with this code. */
async function soleWinner(
  calls: readonly Promise<unknown>[],
  code: LongJobsErrorCode,
  method: string,
): Promise<number> {
  const outcomes = await Promise.allSettled(calls);
  const winners = outcomes.flatMap(({ status }, index) => (status === "fulfilled" ? [index] : []));
  expectThat(
    winners.length === 1,
    `${winners.length} of ${calls.length} parallel ${method} calls resolved, not 1.`,
  );
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") continue;
    const reason: unknown = outcome.reason;
    expectThat(
      isLongJobsError(reason, code),
      `A loser must reject with ${code}, not with ${describeError(reason)}.`,
    );
  }
  return winners[0] ?? 0;
}

/** Reads while an update is under way; the fields of one update all carry its number. */
async function readersSeeWholeUpdates({ store }: CheckContext): Promise<void> {
  const record = minimalRecord({ ttlMs: 1e9, statusMessage: "0", progress: { done: 0 }, data: 0 });
  await store.create(record);
  for (let step = 1; step <= 10; step += 1) {
    const write = { settled: false };
    const patch = { data: step, progress: { done: step }, statusMessage: `${step}`, ttlMs: 1e9 + step };
    const written = store.update("task-1", patch, record.version + step - 1).finally(() => {
      write.settled = true;
    });
    const reads = [store.get("task-1")];
    while (!write.settled) {
      reads.push(store.get("task-1"));
      await nextTurn();
    }
    await written;
    for (const seen of await Promise.all(reads)) {
      const version = (seen?.version ?? 0) - record.version;
      const parts = [
        Number(seen?.data),
        seen?.progress?.done,
        Number(seen?.statusMessage),
        (seen?.ttlMs ?? 0) - 1e9,
      ];
      expectEqual(parts, [version, version, version, version], `What one read saw of update ${step}`);
    }
  }
}

/** Writers that compete and readers that watch, on any number of handles; the history must be possible. */
async function runHistory(stores: readonly TaskStore[]): Promise<void> {
  const birth = minimalRecord({ statusMessage: "birth" });
  const history = new TaskHistory();
  await pick(stores, 0).create(birth);
  for (const store of stores) await store.get("task-1");
  const progress = { writing: true };
  const readOn = async (store: TaskStore): Promise<{ version: number; mark: string }> => {
    const { version, statusMessage } = (await store.get("task-1")) ?? {};
    return { version: version ?? -1, mark: statusMessage ?? "no record" };
  };
  const readers = [0, 1, 2, 3].map(async (reader) => {
    while (progress.writing) {
      await history.read(() => readOn(pick(stores, reader)));
      await nextTurn();
    }
  });
  const writers = [0, 1, 2].map(async (writer) => {
    const store = pick(stores, writer);
    for (let attempt = 0; attempt < 12; attempt += 1) {
      const { version } = await history.read(() => readOn(store));
      const mark = `writer ${writer}, attempt ${attempt}`;
      await history.write(mark, version, () => store.update("task-1", { statusMessage: mark }, version));
      await nextTurn();
    }
  });
  await Promise.all(writers);
  progress.writing = false;
  await Promise.all(readers);
  for (const store of stores) await history.read(() => readOn(store));
  expectPossibleHistory({ version: birth.version, mark: "birth" }, history.events);
}

function pick(stores: readonly TaskStore[], index: number): TaskStore {
  const store = stores[index % stores.length];
  if (store === undefined) throw new Error("A race needs a store.");
  return store;
}
