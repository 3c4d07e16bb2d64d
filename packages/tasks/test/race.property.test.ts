import * as fc from "fast-check";
import { expect, test, vi } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { nextTurn } from "./support/turns.ts";
import type { WireMessage } from "./support/wire.ts";

/** How a handler ends, after as many steps as the scheduler gives it. */
const endings = ["return", "throw", "fail"] as const;

test("whatever order create, the end of the work, a cancel and a disconnect come in: one run, one answer, one outcome", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.constantFrom(...endings),
      fc.constantFrom(0, 1, 60_000),
      fc.record({
        checkpoint: fc.boolean(),
        obedient: fc.boolean(),
        disconnect: fc.boolean(),
        cancel: fc.boolean(),
      }),
      async (scheduler, ending, inlineBudgetMs, { checkpoint, obedient, disconnect, cancel }) => {
        const { tasks, store } = startTasks();
        let runs = 0;
        store.before = async (method) => {
          if (method !== "get") await scheduler.schedule(Promise.resolve(), method);
        };
        tasks.taskTool("work", { inlineBudgetMs }, async (_args, task) => {
          runs += 1;
          if (checkpoint) await task.saveCheckpoint(1);
          await scheduler.schedule(Promise.resolve(), "work");
          if (obedient) task.signal.throwIfAborted();
          if (ending === "throw") throw new Error("thrown");
          if (ending === "fail") throw Object.assign(new Error("failed"), { code: -32_000 });
          return text("returned");
        });
        const http = new HttpDoor(tasks);
        const client = new AbortController();
        const answered = http
          .send("tools/call", { name: "work" }, { signal: client.signal })
          .then(({ message }) => message)
          .catch(() => undefined);
        if (disconnect) void scheduler.schedule(Promise.resolve(), "disconnect").then(() => client.abort());
        if (cancel) void scheduler.schedule(Promise.resolve(), "cancel").then(() => cancelCreated());

        async function cancelCreated(): Promise<void> {
          const taskId = store.calls.find(({ method }) => method === "create")?.taskId;
          if (taskId !== undefined) await tasks.lifecycle.cancelTask(taskId).catch(() => undefined);
        }

        let done = false;
        void answered.then(() => {
          done = true;
        });
        await vi.waitFor(
          async () => {
            while (scheduler.count() > 0) {
              await scheduler.waitOne();
              // What a step set off, such as the news of a disconnect, has arrived before the next one.
              await nextTurn();
            }
            expect(done && tasks.stats().attempts === 0 && tasks.stats().queuedWrites === 0).toBe(true);
          },
          { timeout: 5_000, interval: 1 },
        );

        expect(runs).toBeLessThanOrEqual(1);
        const created = store.calls.filter(({ method }) => method === "create");
        expect(created.length).toBeLessThanOrEqual(1);
        const [{ taskId } = { taskId: "" }] = created;
        const record = await store.inner.get(taskId);
        if (record !== undefined) expect(["completed", "failed", "cancelled"]).toContain(record.status);
        assertAgrees(await answered, record?.status, ending, { disconnect, cancel });
      },
    ),
    { numRuns: 200 },
  );
});

/** The answer and the record tell one story. */
function assertAgrees(
  answer: WireMessage | undefined,
  status: string | undefined,
  ending: (typeof endings)[number],
  wished: { readonly disconnect: boolean; readonly cancel: boolean },
): void {
  const natural = ending === "fail" ? "failed" : "completed";
  if (status !== undefined && status !== natural) {
    expect(status).toBe("cancelled");
    expect(wished.disconnect || wished.cancel).toBe(true);
  }
  if (!wished.disconnect && !wished.cancel) {
    const told = answer?.result?.resultType ?? answer?.error?.code;
    expect(status === undefined && ending === "fail" ? [-32_000] : ["complete", "task"]).toContain(told);
  }
  if (answer?.result?.resultType === "task") expect(status, "a handle has a record").toBeDefined();
  if (answer?.result?.resultType === "complete") expect(status, "an inline result has none").toBeUndefined();
}
