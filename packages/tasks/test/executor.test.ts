import { MemoryTaskStore, type Dispatch } from "@longjobs/core";
import { describe, expect, onTestFinished, test, vi } from "vitest";

import { createTasks, type Executor, type Tasks, type TasksOptions } from "../src/index.ts";
import { HttpDoor } from "./support/http-door.ts";
import { openEntry, start, until, words } from "./support/entries.ts";
import { startTasks, type StartedTasks } from "./support/started-tasks.ts";
import { gatedTool, greeter, text } from "./support/tools.ts";

/** A server that only accepts and answers, a worker that runs, and what was submitted between them. */
function serverAndWorker(options: Partial<TasksOptions> = {}): {
  readonly server: StartedTasks;
  readonly worker: StartedTasks;
  readonly submitted: Dispatch[];
} {
  const store = new MemoryTaskStore();
  const submitted: Dispatch[] = [];
  const submit = async (dispatch: Dispatch): Promise<void> => void submitted.push(dispatch);
  const server = startTasks({ store, executor: { submit }, ...options });
  const worker = startTasks({ store });
  return { server, worker, submitted };
}

test("a call is accepted here and run by the worker that the queue delivers it to", async () => {
  const { server, worker, submitted } = serverAndWorker();
  const here = gatedTool(server.tasks, "work", { inlineBudgetMs: 0 });
  const there = gatedTool(worker.tasks, "work", { inlineBudgetMs: 0 });
  const client = await openEntry(server.tasks);
  const taskId = await start(client, "work");
  expect(submitted).toEqual([{ taskId, tool: "work", attempt: 1 }]);
  expect(await server.store.get(taskId)).toMatchObject({
    attempt: 0,
    crashes: 0,
    lease: { owner: "executor" },
  });
  const running = worker.tasks.run(taskId);
  there.gate.open();
  expect(await running).toMatchObject({ status: "completed", result: text("done") });
  expect(words(await until(client, taskId, "completed"))).toBe("done");
  expect(here.runs).toEqual([]);
  expect(there.runs).toHaveLength(1);
  expect(await server.store.get(taskId)).toMatchObject({ attempt: 1, crashes: 0 });
});

test("a result that a worker has within the inline budget is the answer of the call", async () => {
  const { server, worker, submitted } = serverAndWorker();
  for (const { tasks } of [server, worker])
    tasks.taskTool("quick", { inlineBudgetMs: 10_000 }, () => text("at once"));
  const client = await openEntry(server.tasks);
  const answering = client.call("quick");
  await vi.waitFor(() => expect(submitted).toHaveLength(1));
  await worker.tasks.run(submitted[0]?.taskId ?? "");
  expect(words(await answering)).toBe("at once");
});

test("a client that waits to the end gets the worker's result", async () => {
  const { server, worker, submitted } = serverAndWorker();
  for (const { tasks } of [server, worker])
    tasks.taskTool("slow", { fallback: "wait" }, () => text("in the end"));
  const client = await openEntry(server.tasks);
  const answering = client.call("slow");
  await vi.waitFor(() => expect(submitted).toHaveLength(1));
  await worker.tasks.run(submitted[0]?.taskId ?? "");
  expect(words(await answering)).toBe("in the end");
});

test("a question of the worker reaches the client, and its answer the worker", async () => {
  const { server, worker, submitted } = serverAndWorker();
  for (const { tasks } of [server, worker]) greeter(tasks, "greet", { inlineBudgetMs: 10_000 });
  const client = await openEntry(server.tasks);
  const starting = start(client, "greet");
  await vi.waitFor(() => expect(submitted).toHaveLength(1));
  const running = worker.tasks.run(submitted[0]?.taskId ?? "");
  const taskId = await starting;
  await until(client, taskId, "input_required");
  await client.call("durable_task_respond", { taskId, response: "Ada" });
  expect(await running).toMatchObject({ status: "completed" });
});

describe("run()", () => {
  test("is refused retryably while another worker runs the task, and runs nothing once it has ended", async () => {
    const { server, worker } = serverAndWorker();
    const other = startTasks({ store: worker.store.inner });
    server.tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("never here"));
    const there = gatedTool(worker.tasks, "work");
    const idle = gatedTool(other.tasks, "work");
    const taskId = await start(await openEntry(server.tasks), "work");
    const running = worker.tasks.run(taskId);
    await vi.waitFor(() => expect(there.runs).toHaveLength(1));
    await expect(other.tasks.run(taskId)).rejects.toMatchObject({ code: "lease_lost", retryable: true });
    there.gate.open();
    const ended = await running;
    expect(await other.tasks.run(taskId)).toEqual(ended);
    expect(idle.runs).toEqual([]);
  });

  test("of 20 deliveries at once runs one", async () => {
    const { server, worker } = serverAndWorker();
    server.tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("never here"));
    const there = gatedTool(worker.tasks, "work");
    const taskId = await start(await openEntry(server.tasks), "work");
    const deliveries = Array.from({ length: 20 }, () => worker.tasks.run(taskId));
    const settled = Promise.allSettled(deliveries);
    await vi.waitFor(() => expect(there.runs).toHaveLength(1));
    there.gate.open();
    const refused = (await settled).filter(({ status }) => status === "rejected");
    for (const refusal of refused) expect(refusal).toMatchObject({ reason: { code: "lease_lost" } });
    expect(there.runs).toHaveLength(1);
  });

  test("is a TypeError for a tool that this worker does not have, and changes nothing", async () => {
    const { server, worker } = serverAndWorker();
    server.tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("never here"));
    const taskId = await start(await openEntry(server.tasks), "work");
    const before = await server.store.get(taskId);
    await expect(worker.tasks.run(taskId)).rejects.toThrow(TypeError);
    await expect(worker.tasks.run("nobody")).rejects.toMatchObject({ code: "unknown_task" });
    expect(await server.store.get(taskId)).toEqual(before);
  });

  test("rejects retryably when its process shuts down, and the next delivery goes on", async () => {
    const { server, worker } = serverAndWorker();
    const other = startTasks({ store: worker.store.inner });
    server.tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("never here"));
    const stopped = gatedTool(worker.tasks, "work", { inlineBudgetMs: 0, onInterrupted: "resume" });
    const next = gatedTool(other.tasks, "work", { inlineBudgetMs: 0, onInterrupted: "resume" });
    const taskId = await start(await openEntry(server.tasks), "work");
    const running = worker.tasks.run(taskId);
    const rejected = expect(running).rejects.toMatchObject({ code: "shutdown", retryable: true });
    await vi.waitFor(() => expect(stopped.runs).toHaveLength(1));
    await worker.tasks.close();
    await rejected;
    next.gate.open();
    expect(await other.tasks.run(taskId)).toMatchObject({ status: "completed" });
    expect(await server.store.get(taskId)).toMatchObject({ attempt: 2, crashes: 0 });
  });
});

describe("a delivery that is lost", () => {
  let nowMs = Date.now();

  /** A server on a store that can claim, and what it reported. */
  function startServer(submit: Executor["submit"]): { readonly tasks: Tasks; readonly errors: unknown[] } {
    const now = (): number => nowMs;
    const errors: unknown[] = [];
    const store = new MemoryTaskStore({ now });
    const onError = (error: unknown): void => void errors.push(error);
    const tasks = createTasks({ store, scope: null, now, dispatchMs: 5_000, executor: { submit }, onError });
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("never here"));
    onTestFinished(() => tasks.close());
    return { tasks, errors };
  }

  test("is made again, under the same number, when no worker has come in dispatchMs", async () => {
    const submitted: Dispatch[] = [];
    const { tasks } = startServer(async (dispatch) => void submitted.push(dispatch));
    const taskId = await start(await openEntry(tasks), "work");
    const first = { taskId, tool: "work", attempt: 1 };
    nowMs += 4_999;
    await tasks.recover();
    expect(submitted).toEqual([first]);
    nowMs += 1;
    await tasks.recover();
    expect(submitted).toEqual([first, first]);
  });

  test("because the queue refused it is reported, and made again: the call was accepted", async () => {
    let away = true;
    const submitted: Dispatch[] = [];
    const { tasks, errors } = startServer(async (dispatch) => {
      if (away) throw new Error("The queue is away.");
      submitted.push(dispatch);
    });
    const taskId = await start(await openEntry(tasks), "work");
    expect(errors).toMatchObject([{ message: "The queue is away." }]);
    away = false;
    nowMs += 5_000;
    await tasks.recover();
    expect(submitted).toEqual([{ taskId, tool: "work", attempt: 1 }]);
  });
});

test.for([
  [false, "cancels the task: nobody could reach it"],
  [true, "leaves the task alone when the call has a key: it comes again"],
] as const)("a client that goes away before it was answered (with a key: %s) %s (P12)", async ([keyed]) => {
  const { server, submitted, worker } = serverAndWorker({
    idempotencySecret: "a secret that is long enough for it",
  });
  server.tasks.taskTool("work", { inlineBudgetMs: 60_000 }, () => text("never here"));
  const gone = new AbortController();
  const meta = keyed ? { "longjobs/idempotencyKey": "k1" } : {};
  const calling = new HttpDoor(server.tasks)
    .send("tools/call", { name: "work", arguments: {} }, { meta, signal: gone.signal })
    .catch(() => undefined);
  await vi.waitFor(() => expect(submitted).toHaveLength(1));
  gone.abort();
  await calling;
  const taskId = submitted[0]?.taskId ?? "";
  if (!keyed) {
    await expect.poll(async () => (await server.store.get(taskId))?.status).toBe("cancelled");
    return;
  }
  await vi.waitFor(() => expect(server.tasks.stats().watchedTasks).toBe(0));
  worker.tasks.taskTool("work", {}, () => text("in time"));
  const again = new HttpDoor(server.tasks).send("tools/call", { name: "work", arguments: {} }, { meta });
  expect(await worker.tasks.run(taskId)).toMatchObject({ status: "completed" });
  expect((await again).message.result).toMatchObject(text("in time"));
});

test("calls with one key are one delivery, and each is answered with the same task", async () => {
  const { server, submitted } = serverAndWorker({ idempotencySecret: "a secret that is long enough for it" });
  server.tasks.taskTool("work", { inlineBudgetMs: 0, idempotencyArgument: "key" }, () => text("never here"));
  const client = await openEntry(server.tasks);
  const ids = await Promise.all(Array.from({ length: 10 }, () => start(client, "work", { key: "k1" })));
  expect(new Set(ids).size).toBe(1);
  expect(submitted).toEqual([{ taskId: ids[0], tool: "work", attempt: 1 }]);
});

test("at most maxConcurrentRuns handlers run at once; the others wait their turn, with their tasks held", async () => {
  const { tasks } = startTasks({ maxConcurrentRuns: 2 });
  const work = gatedTool(tasks, "work", { inlineBudgetMs: 0 });
  const client = await openEntry(tasks);
  const ids = await Promise.all(Array.from({ length: 5 }, () => start(client, "work")));
  expect(work.runs).toHaveLength(2);
  expect(tasks.stats()).toMatchObject({ handlers: 5, queuedRuns: 3, attempts: 5 });
  const waiting = ids.find((taskId) => work.runs.every((run) => run.taskId !== taskId)) ?? "";
  await client.call("durable_task_cancel", { taskId: waiting });
  await until(client, waiting, "cancelled");
  work.gate.open();
  for (const taskId of ids) if (taskId !== waiting) await until(client, taskId, "completed");
  expect(work.runs).toHaveLength(4);
  await vi.waitFor(() => expect(tasks.stats()).toMatchObject({ handlers: 0, queuedRuns: 0 }));
});
