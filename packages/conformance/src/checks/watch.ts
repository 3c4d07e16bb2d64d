import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check, type Need } from "../check.ts";
import { expectThat } from "../expect.ts";
import { minimalRecord } from "../records.ts";
import { nextTurn, waitFor } from "../wait.ts";

/** The optional capability `watch`. Hints may be merged and repeated; the checks count only none or some. */
export const watchChecks: readonly Check[] = [
  watchCheck(
    "watch.hears-changes",
    "watch() calls its listener after each change of the task",
    async (ctx) => {
      const hints = await listen(ctx, "task-1");
      for (const step of [0, 1, 2]) {
        const before = hints.count;
        await touch(ctx, "task-1", step);
        await waitFor(() => hints.count > before, `A hint of update ${step + 1}`);
      }
    },
  ),
  watchCheck(
    "watch.change-can-be-read",
    "when the listener is called, get() shows the change",
    async (ctx) => {
      const reads: Promise<number | undefined>[] = [];
      await ctx.watch("task-1", () => {
        reads.push(ctx.store.get("task-1").then((record) => record?.version));
      });
      await touch(ctx, "task-1");
      await waitFor(() => reads.length > 0, "A hint of the update");
      const [seen] = await Promise.all(reads);
      expectThat(
        seen === minimalRecord().version + 1,
        "A listener was called before the change could be read.",
      );
    },
  ),
  watchCheck(
    "watch.ignores-other-tasks",
    "a listener is not called for changes of other tasks",
    async (ctx) => {
      const hints = await listen(ctx, "task-1");
      const others = await listen(ctx, "task-2");
      // A store that connects anew may tell every listener to look; one that mixes tasks up tells each time.
      for (let round = 0; round < 3; round += 1) {
        const [before, seen] = [hints.count, others.count];
        await touch(ctx, "task-2");
        await waitFor(() => others.count > seen, "A hint for the task that changed");
        await nextTurn();
        if (hints.count === before) return;
      }
      throw new Error("The listener of task-1 was called for changes of task-2.");
    },
  ),
  watchCheck(
    "watch.ends",
    "after the returned function was called the listener is not called again",
    async (ctx) => {
      const ended = await listen(ctx, "task-1");
      const witness = await listen(ctx, "task-1");
      await ended.end();
      await touch(ctx, "task-1");
      await waitFor(() => witness.count > 0, "A hint for the listener that goes on");
      await nextTurn();
      expectThat(ended.count === 0, "A listener was called after its watch had ended.");
    },
  ),
  watchCheck(
    "watch.ends-twice",
    "ending a watch twice is harmless, to it and to the others of the task",
    async (ctx) => {
      const ended = await listen(ctx, "task-1");
      const witness = await listen(ctx, "task-1");
      await ended.end();
      await ended.end();
      await touch(ctx, "task-1");
      await waitFor(() => witness.count > 0, "A hint for the listener that goes on");
    },
  ),
  watchCheck(
    "watch.same-listener-twice",
    "one function watching twice is two watches: ending one leaves the other",
    async (ctx) => {
      let count = 0;
      const onChange = (): void => {
        count += 1;
      };
      const end = await ctx.watch("task-1", onChange);
      await ctx.watch("task-1", onChange);
      await end();
      await touch(ctx, "task-1");
      await waitFor(() => count > 0, "A hint for the watch that goes on");
    },
  ),
  watchCheck(
    "watch.hears-claims",
    "a claim is a change that listeners hear of",
    async (ctx) => {
      const hints = await listen(ctx, "task-1");
      await ctx.leasing().claim("claimer", ctx.unitMs, { limit: 1, taskIds: ["task-1"] });
      await waitFor(() => hints.count > 0, "A hint of the claim");
    },
    ["claim"],
  ),
];

function watchCheck(
  id: string,
  title: string,
  run: (ctx: CheckContext) => Promise<void>,
  needs: readonly Need[] = [],
): Check {
  return defineCheck({
    id,
    rule: "C24",
    title,
    needs: ["watch", ...needs],
    async run(ctx) {
      for (const taskId of ["task-1", "task-2"]) await ctx.store.create(minimalRecord({ taskId }));
      await run(ctx);
    },
  });
}

interface Hints {
  count: number;
  end(): Promise<void>;
}

async function listen(ctx: CheckContext, taskId: string): Promise<Hints> {
  const hints: Hints = { count: 0, end: () => Promise.resolve() };
  hints.end = await ctx.watch(taskId, () => {
    hints.count += 1;
  });
  return hints;
}

function touch({ store }: CheckContext, taskId: string, step = 0): Promise<number> {
  return store.update(taskId, { statusMessage: `change ${step}` }, minimalRecord().version + step);
}
