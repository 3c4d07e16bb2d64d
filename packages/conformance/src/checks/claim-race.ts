import type { TaskRecord } from "@longjobs/core";

import { defineCheck, type Check } from "../check.ts";
import { expectEqual, expectThat } from "../expect.ts";
import { expectPossibleHistory, TaskHistory } from "../history.ts";
import { leaseCheck, longLeaseMs, noLimit, type LeasingStore } from "../lease-check.ts";
import { minimalRecord } from "../records.ts";
import { nextTurn } from "../wait.ts";

const claimers = [0, 1, 2, 3, 4, 5, 6, 7] as const;
const rounds = 3;

/** What holds when claims run at once, with one another and with updates. */
export const claimRaceChecks: readonly Check[] = [
  leaseCheck({
    id: "race.one-claimer",
    rule: "C28",
    title: "parallel claim() calls never take one task twice, and what each was given is what is stored",
    async run(_ctx, store) {
      for (let round = 0; round < rounds; round += 1) await raceToClaim([store], round);
    },
  }),
  leaseCheck({
    id: "race.claims-follow-writes",
    rule: "C28",
    title: "claims and updates at once are in one order: each version has one writer, a claim or an update",
    async run(_ctx, store) {
      await runClaimHistory(store);
    },
  }),
];

/** The same race between two handles. */
export const sharedClaimRaceChecks: readonly Check[] = [
  defineCheck({
    id: "race.one-claimer-of-two-handles",
    rule: "C22",
    title: "parallel claim() calls by two handles never take one task twice",
    profile: "shared",
    needs: ["claim", "second"],
    async run(ctx) {
      const stores = [ctx.leasing(), ctx.leasing(await ctx.second())];
      for (let round = 0; round < rounds; round += 1) await raceToClaim(stores, round);
    },
  }),
];

/** A store may pass over a task that another claim is looking at: what is left is claimed afterwards. */
async function raceToClaim(stores: readonly LeasingStore[], round: number): Promise<void> {
  const [store] = stores;
  if (store === undefined) throw new Error("A race needs a store.");
  const taskIds = Array.from({ length: 12 }, (_, index) => `task-${round}-${index}`);
  for (const taskId of taskIds) await store.create(minimalRecord({ taskId }));
  for (const each of stores) await Promise.all(taskIds.map((taskId) => each.get(taskId)));
  const options = { limit: 3, taskIds };
  const claims = claimers.map((index) =>
    (stores[index % stores.length] ?? store).claim(`claimer ${index}`, longLeaseMs, options),
  );
  const taken = (await Promise.all(claims)).flat();
  taken.push(...(await store.claim("the last claimer", longLeaseMs, { limit: noLimit, taskIds })));
  const ids = taken.map(({ taskId }) => taskId);
  expectThat(
    new Set(ids).size === ids.length,
    `Of ${ids.length} tasks claimed at once some were given twice.`,
  );
  expectEqual(ids.toSorted(), taskIds.toSorted(), "The tasks that were claimed in the end");
  for (const each of stores) {
    for (const record of taken)
      expectEqual(
        await each.get(record.taskId),
        record,
        "The record after the race, against what its claimer got,",
      );
  }
}

/** Claimers take one task, writers write and so release it, readers watch; the history must be possible. */
async function runClaimHistory(store: LeasingStore): Promise<void> {
  const birth = minimalRecord({ statusMessage: "birth" });
  const history = new TaskHistory();
  await store.create(birth);
  const progress = { writing: true };
  const readOn = async (): Promise<{ version: number; mark: string }> =>
    seenIn((await store.get("task-1")) ?? birth);
  const readers = [0, 1].map(async () => {
    while (progress.writing) {
      await history.read(readOn);
      await nextTurn();
    }
  });
  const claiming = [0, 1, 2].map(async (claimer) => {
    for (let attempt = 0; attempt < 12; attempt += 1) {
      await history.acquire(async () => {
        const [record] = await store.claim(`claimer ${claimer}`, longLeaseMs, { limit: 1 });
        return record && seenIn(record);
      });
      await nextTurn();
    }
  });
  const writers = [0, 1].map(async (writer) => {
    for (let attempt = 0; attempt < 12; attempt += 1) {
      const { version } = await history.read(readOn);
      const patch = { statusMessage: `writer ${writer}, attempt ${attempt}`, lease: undefined };
      const mark = markOf(patch.statusMessage, undefined);
      await history.write(mark, version, () => store.update("task-1", patch, version));
      await nextTurn();
    }
  });
  await Promise.all([...claiming, ...writers]);
  progress.writing = false;
  await Promise.all(readers);
  await history.read(readOn);
  expectPossibleHistory({ version: birth.version, mark: markOf("birth", undefined) }, history.events);
}

function seenIn({ version, statusMessage, lease }: TaskRecord): { version: number; mark: string } {
  return { version, mark: markOf(statusMessage, lease?.token) };
}

function markOf(statusMessage: string | undefined, token: string | undefined): string {
  return `${statusMessage} (${token === undefined ? "free" : `held with ${token}`})`;
}
