import { faultyTaskStore } from "@longjobs/conformance";
import { afterEach, expect, test, vi } from "vitest";

import { isLongJobsError, LongJobsError, MemoryTaskStore, type TaskHandle } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { accepted, needsOk, question } from "./support/questions.ts";

/** A small generator with a seed, so that a failure can be run again. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const unhandled: unknown[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));

afterEach(() => {
  expect(unhandled.splice(0)).toEqual([]);
});

/** Repeats a call while the store is away, as a careful handler or client does. */
async function patiently<Value>(call: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isLongJobsError(error, "store_unavailable")) throw error;
    }
  }
}

async function careful(task: TaskHandle, name: number): Promise<{ readonly [key: string]: string }> {
  for (let page = 1; page <= 3; page += 1) {
    await patiently(() => task.progress({ message: `task ${name}`, done: page, total: 3 }));
    await patiently(() => task.saveCheckpoint({ page }));
  }
  const given = await patiently(() => task.requestInput({ size: question(`Size of ${name}?`) }));
  return { name: `${name}`, given: JSON.stringify(given["size"]) };
}

test.each([1])(
  "40 tasks over a store that fails one call in ten, before or after the write: each has its own result in the end (seed %i)",
  async (seed) => {
    const random = seededRandom(seed);
    let failing = true;
    const away = (): void => {
      if (failing && random() < 0.1)
        throw new LongJobsError("store_unavailable", "Away.", { retryable: true });
    };
    const inner = new MemoryTaskStore();
    const store = faultyTaskStore(inner, {
      before: away,
      after: away,
      repeat: ({ method }) => method !== "close" && random() < 0.05,
    });
    const worker = startEngine({ store, waitPollMs: 20, random, validateAnswer: needsOk });
    const client = startEngine({ store, waitPollMs: 20, random, validateAnswer: needsOk });
    const work = async (name: number): Promise<void> => {
      const { taskId } = await patiently(() => worker.lifecycle.createTask());
      const handle = worker.lifecycle.handle(taskId);
      const running = worker.lifecycle.run(handle, (task) => careful(task, name));
      let shown = await patiently(() => client.lifecycle.getTask(taskId));
      let bad = name % 3;
      while (shown.status === "working" || shown.status === "input_required") {
        if (shown.status === "input_required") {
          const [key = ""] = Object.keys(shown.inputRequests);
          const response = accepted(bad > 0 ? {} : { ok: true, name });
          bad -= 1;
          await patiently(() => client.lifecycle.updateTask(taskId, { [key]: response }));
        }
        const seen = shown;
        shown = await patiently(() => client.lifecycle.waitForChange(taskId, { seen, timeoutMs: 50 }));
      }
      expect(await running).toMatchObject({ status: "completed" });
      expect(shown).toMatchObject({
        status: "completed",
        result: { name: `${name}`, given: JSON.stringify(accepted({ ok: true, name })) },
      });
    };
    await Promise.all(Array.from({ length: 40 }, (_, name) => work(name)));
    failing = false;
    await vi.waitFor(() => expect(worker.lifecycle.stats.attempts).toBe(0));
    for (const engine of [worker, client]) {
      for (const error of takeErrors(engine)) expect(error).toMatchObject({ code: "store_unavailable" });
    }
  },
);
