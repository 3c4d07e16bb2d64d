import { TaskLifecycle, type TaskStatus } from "@longjobs/core";
import { expect, it, onTestFinished } from "vitest";
import { freshStore, testPool } from "./support/fresh-schema.ts";
import { listenClient } from "./support/under-test.ts";
import { waitUntil } from "./support/wait-until.ts";
import { withPostgres } from "./support/with-postgres.ts";

withPostgres("a pool of two connections", () => {
  it.each([
    ["without notifications", {}],
    ["with notifications", { listen: listenClient }],
  ])(
    "serves fifty running tasks and fifty waits, none of which holds a connection, %s (P51)",
    async (_name, options) => {
      const pool = testPool({ max: 2 });
      const { store } = await freshStore({ pool, ...options });
      const lifecycle = new TaskLifecycle({ store, waitPollMs: 2_000, leaseMs: 5_000 });
      onTestFinished(() => lifecycle.close());
      const tasks = await Promise.all(Array.from({ length: 50 }, () => lifecycle.createTask()));
      const waits = tasks.map(({ taskId }) => waitFor(lifecycle, taskId, "input_required"));
      const questions = tasks.map(({ taskId }) =>
        lifecycle
          .handle(taskId)
          .requestInput({ go: { method: "elicitation/create", params: { message: "Go on?" } } }),
      );
      await Promise.all(waits);
      // All fifty handlers wait now, and so do fifty clients: the pool is free.
      const ends = tasks.map(({ taskId }) => waitFor(lifecycle, taskId, "completed"));
      await waitUntil(() => pool.idleCount === 2, "both connections are idle");
      const answer = { action: "accept", content: {} };
      await Promise.all(tasks.map(({ taskId }) => lifecycle.updateTask(taskId, { go: answer })));
      expect(await Promise.all(questions)).toEqual(tasks.map(() => ({ go: answer })));
      await Promise.all(tasks.map(({ taskId }) => lifecycle.handle(taskId).complete({ content: [] })));
      await Promise.all(ends);
      expect(pool.totalCount).toBeLessThanOrEqual(2);
    },
  );
});

async function waitFor(lifecycle: TaskLifecycle, taskId: string, wanted: TaskStatus): Promise<void> {
  let task = await lifecycle.getTask(taskId);
  while (task.status !== wanted) {
    task = await lifecycle.waitForChange(taskId, { seen: task, timeoutMs: 30_000 });
  }
}
