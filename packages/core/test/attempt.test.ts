import { faultyTaskStore } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore, TASKS_EXTENSION_ID, type TaskStore } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { question } from "./support/questions.ts";
import { gate, nextTurn } from "./support/turns.ts";

test("the extension has the name of the specification", () => {
  expect(TASKS_EXTENSION_ID).toBe("io.modelcontextprotocol/tasks");
});

describe("the signal of an attempt", () => {
  // CASES part 2, engine: "signal identity. After a terminal transition handle.signal is a new, never-aborted signal".
  test("is one object for its whole life, also after its end", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const { signal } = task;
    expect(lifecycle.handle(taskId).signal).toBe(signal);
    await task.complete({});
    expect(task.signal).toBe(signal);
    expect(signal.aborted, "an end of its own aborts nothing").toBe(false);
  });

  test("is aborted once, with the first reason", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    let fired = 0;
    task.signal.addEventListener("abort", () => {
      fired += 1;
    });
    await lifecycle.cancelTask(taskId);
    await lifecycle.close({ shutdownGraceMs: 0 });
    expect(fired).toBe(1);
    expect(task.signal.reason).toMatchObject({ code: "cancelled" });
  });

  test("says shutdown when the engine closes, lease_lost when another attempt owns the task, cancelled when it was ended so", async () => {
    const store = new MemoryTaskStore();
    const { lifecycle } = startEngine({ store });
    const [a, b, c] = await Promise.all([
      lifecycle.createTask(),
      lifecycle.createTask(),
      lifecycle.createTask(),
    ]);
    const tasks = [a, b, c].map(({ taskId }) => lifecycle.handle(taskId));
    const overwrite = async (taskId: string, patch: Parameters<TaskStore["update"]>[1]): Promise<void> => {
      await store.update(taskId, patch, (await store.get(taskId))?.version ?? 0);
      await nextTurn();
    };
    await overwrite(a.taskId, { lease: { owner: "other", token: "other", durationMs: 1 } });
    await overwrite(b.taskId, { status: "cancelled", lease: undefined, finishedBy: "other" });
    await lifecycle.close({ shutdownGraceMs: 0 });
    expect(tasks.map(({ signal }) => signal.reason as unknown)).toMatchObject([
      { code: "lease_lost" },
      { code: "cancelled" },
      { code: "shutdown" },
    ]);
  });
});

describe("an attempt that is not recorded yet", () => {
  test("writes nothing, whatever it reports, and leaves nothing behind when it is done", async () => {
    const { lifecycle, store } = startEngine();
    const task = lifecycle.begin();
    const heard: unknown[] = [];
    task.onProgress((progress) => heard.push(progress));
    const outcome = await lifecycle.run(task, async () => {
      await task.progress("half");
      expect(await task.resumeInput()).toEqual({});
      return { done: true };
    });
    expect(outcome).toEqual({ status: "completed", result: { done: true } });
    expect(heard).toEqual([{ message: "half" }]);
    expect((store as MemoryTaskStore).size).toBe(0);
    expect(lifecycle.stats.attempts).toBe(0);
  });

  test.each([
    ["requestInput", (task: ReturnType<Engine["begin"]>) => void task.requestInput({ a: question() })],
    ["saveCheckpoint", (task: ReturnType<Engine["begin"]>) => void task.saveCheckpoint(1)],
    ["complete", (task: ReturnType<Engine["begin"]>) => void task.complete({})],
    ["promote", (task: ReturnType<Engine["begin"]>) => void task.promote()],
  ])("%s records it, with its progress so far, and says so once", async (_name, act) => {
    const { lifecycle, store } = startEngine();
    const task = lifecycle.begin({ statusMessage: "Waiting" });
    let promoted = 0;
    task.onPromote(() => {
      promoted += 1;
    });
    await task.progress({ message: "Page", done: 1 });
    act(task);
    const view = await task.promote();
    expect(view).toMatchObject({ taskId: task.taskId, status: "working", statusMessage: "Page: 1" });
    expect(promoted).toBe(1);
    expect(task.recorded).toBe(true);
    await vi.waitFor(async () => expect(await store.get(task.taskId)).toBeDefined());
  });

  test("resumeInput waits for the record that is being made", async () => {
    const creating = gate();
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ method }) => (method === "create" ? creating.opened : undefined),
    });
    const task = startEngine({ store }).lifecycle.begin();
    const promoted = task.promote();
    const resumed = task.resumeInput();
    await nextTurn();
    creating.open();
    await promoted;
    expect(await resumed).toEqual({});
  });

  test("promotions at once are one create, and progress meanwhile is not lost", async () => {
    const creating = gate();
    let creates = 0;
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: async ({ method }) => {
        if (method !== "create") return;
        creates += 1;
        await creating.opened;
      },
    });
    const { lifecycle } = startEngine({ store });
    const task = lifecycle.begin();
    const promoting = [task.promote(), task.promote()];
    const reported = task.progress("meanwhile");
    creating.open();
    const [first, second] = await Promise.all(promoting);
    await reported;
    expect(creates).toBe(1);
    expect(first).toEqual(second);
    expect(await lifecycle.getTask(task.taskId)).toMatchObject({ statusMessage: "meanwhile" });
  });

  test("a create that the store rejects aborts the work: nobody could reach it (P01)", async () => {
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ method }) => {
        if (method === "create") throw new LongJobsError("store_unavailable", "The store is away.");
      },
    });
    const { lifecycle } = startEngine({ store });
    const task = lifecycle.begin();
    const running = lifecycle.run(task, async ({ signal }) => {
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve);
      });
      throw new Error("stopped");
    });
    expect(await codeOf(task.promote())).toBe("store_unavailable");
    expect(await running).toMatchObject({ status: "abandoned", reason: { code: "store_unavailable" } });
    expect(lifecycle.stats.attempts).toBe(0);
  });

  test("a client that goes away before it got an id aborts it with request_cancelled (P12)", async () => {
    const { lifecycle, store } = startEngine();
    const task = lifecycle.begin();
    const running = lifecycle.run(task, ({ signal }) => {
      lifecycle.abandonRequest(task);
      signal.throwIfAborted();
    });
    expect(await running).toEqual({ status: "cancelled" });
    expect(task.signal.reason).toMatchObject({ code: "request_cancelled" });
    expect((store as MemoryTaskStore).size).toBe(0);
    expect(await codeOf(task.promote()), "too late").toMatch(/^(?:task_terminal|request_cancelled)$/);
    expect((store as MemoryTaskStore).size).toBe(0);
  });

  test("that is promoted when its work is over already is refused, writes nothing and aborts nothing", async () => {
    const { lifecycle, store } = startEngine();
    const task = lifecycle.begin();
    await lifecycle.run(task, () => ({}));
    expect(await codeOf(task.promote())).toBe("task_terminal");
    expect(await codeOf(task.progress("late"))).toBe("task_terminal");
    expect(task.signal.aborted).toBe(false);
    expect((store as MemoryTaskStore).size).toBe(0);
  });

  test("whose client goes away while it is being recorded ends as cancelled: it can be read, nobody can be told", async () => {
    const creating = gate();
    const store = faultyTaskStore(new MemoryTaskStore(), {
      before: ({ method }) => (method === "create" ? creating.opened : undefined),
    });
    const { lifecycle } = startEngine({ store });
    const task = lifecycle.begin();
    const running = lifecycle.run(task, async ({ signal }) => {
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve);
      });
      throw new Error("stopped");
    });
    const promoting = task.promote();
    lifecycle.abandonRequest(task);
    creating.open();
    await promoting;
    expect(await running).toEqual({ status: "cancelled" });
    expect(await lifecycle.getTask(task.taskId)).toMatchObject({ status: "cancelled" });
  });
});

type Engine = ReturnType<typeof startEngine>["lifecycle"];

test("a listener that throws is reported and stops neither the write nor the others", async () => {
  const engine = startEngine();
  const heard: string[] = [];
  engine.lifecycle.onTaskChanged(() => {
    throw new Error("broken listener");
  });
  engine.lifecycle.onTaskChanged(({ status }) => heard.push(status));
  const { taskId } = await engine.lifecycle.createTask();
  await engine.lifecycle.handle(taskId).complete({});
  expect(heard).toEqual(["working", "completed"]);
  expect(takeErrors(engine)).toHaveLength(2);
});

test("a progress or promote listener that throws is reported and does not stop the work", async () => {
  const engine = startEngine();
  const { lifecycle } = engine;
  const task = lifecycle.begin();
  task.onProgress(() => {
    throw new Error("broken");
  });
  task.onPromote(() => {
    throw new Error("broken");
  });
  await task.progress("half");
  await task.promote();
  expect(await lifecycle.getTask(task.taskId)).toMatchObject({ statusMessage: "half" });
  expect(takeErrors(engine)).toHaveLength(2);
});
