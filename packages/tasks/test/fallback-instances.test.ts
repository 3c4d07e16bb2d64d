import { MemoryTaskStore, type TaskPatch } from "@longjobs/core";
import { describe, expect, test, vi } from "vitest";

import { entries, openEntry, start, until } from "./support/entries.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { gatedTool, greeter, text } from "./support/tools.ts";
import { gate, type Gate } from "./support/turns.ts";

const get = "durable_task_get";
const respond = "durable_task_respond";
const cancel = "durable_task_cancel";

/** Two engines over one store, each with the same tools: two instances of a server. */
function twoInstances() {
  // The instance that works hears of a cancel with its next heartbeat, where the store tells it nothing.
  const here = startTasks({ leaseMs: 3_000 });
  const there = startTasks({ store: here.store.inner, leaseMs: 3_000 });
  const tools = [here, there].map(({ tasks }) => {
    greeter(tasks);
    return gatedTool(tasks, "work");
  });
  return { here: here.tasks, there: there.tasks, work: tools[0], idle: tools[1] };
}

// CASES part 2, tasks: "second server instance answers ... healthy task marked failed `task_lost`; same for cancel".
describe("an instance that does not run the work answers for it all the same", () => {
  test.for(entries)("%s: the result, the answer and the cancel reach the other one", async ([, open]) => {
    const { here, there, work, idle } = twoInstances();
    const starter = await open(here);
    const client = await open(there);
    const [working, stopping, asking] = [
      await start(starter, "work"),
      await start(starter, "work"),
      await start(starter, "greet"),
    ];
    expect((await client.call(get, { taskId: working })).structuredContent).toMatchObject({
      status: "working",
    });

    await until(client, asking, "input_required");
    const reply = await client.call(respond, { taskId: asking, response: "Ada" });
    expect(reply.isError).toBeUndefined();
    expect((await until(client, asking, "completed")).content?.[0]?.text).toContain("Ada");

    await client.call(cancel, { taskId: stopping });
    await until(client, stopping, "cancelled");
    expect(work?.runs[1]?.signal.reason).toMatchObject({ code: "cancelled" });

    work?.gate.open();
    expect((await until(client, working, "completed")).content).toEqual(text("done").content);
    expect(idle?.runs).toEqual([]);
  });

  test("a wait here ends when the work ends there", async () => {
    const { here, there, work } = twoInstances();
    const taskId = await start(await openEntry(here), "work");
    const client = await openEntry(there);
    const waiting = client.call(get, { taskId, waitSeconds: 25 });
    work?.gate.open();
    expect((await waiting).content).toEqual(text("done").content);
  });
});

/** A store that says so late: what it wrote can be read before its call resolves. */
class LateStore extends MemoryTaskStore {
  hold: Gate | undefined;

  override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    const version = await super.update(taskId, patch, expectedVersion);
    await this.hold?.opened;
    return version;
  }
}

// CASES part 2, tasks: "respond race with a slow store: input_required visible before the resolver is registered".
test("an answer that comes before the store has confirmed the question is delivered", async () => {
  const store = new LateStore();
  const asking = startTasks({ store });
  const answering = startTasks({ store });
  greeter(asking.tasks);
  greeter(answering.tasks);
  const confirm = gate();
  store.hold = confirm;
  const taskId = await start(await openEntry(asking.tasks), "greet");
  await expect.poll(async () => (await store.get(taskId))?.status).toBe("input_required");
  const client = await openEntry(answering.tasks);
  const reply = client.call(respond, { taskId, response: "Ada" });
  await expect.poll(async () => (await store.get(taskId))?.status).toBe("working");
  confirm.open();
  expect((await reply).isError).toBeUndefined();
  expect((await until(client, taskId, "completed")).content?.[0]?.text).toContain("Ada");
});

// CASES part 2, tasks: "terminal records never expire or get deleted ...; controllers leak if create() throws".
describe("nothing is left behind", () => {
  test("of finished tasks that were followed with tools, once they have expired", async () => {
    let nowMs = Date.now();
    const store = new MemoryTaskStore({ now: () => nowMs });
    const { tasks } = startTasks({ store, now: () => nowMs, retentionMs: 1_000 });
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("done"));
    const client = await openEntry(tasks);
    for (let round = 0; round < 100; round += 1) {
      const taskId = await start(client, "work");
      await client.call(get, { taskId, waitSeconds: 5 });
    }
    expect(store.size).toBe(100);
    expect(tasks.stats()).toEqual({
      attempts: 0,
      handlers: 0,
      queuedRuns: 0,
      lateOutcomes: 0,
      queuedWrites: 0,
      watchedTasks: 0,
      watchedOwners: 0,
    });
    nowMs += 86_400_000;
    await tasks.lifecycle.sweep();
    expect(store.size).toBe(0);
  });

  test("of a call whose create the store refused", async () => {
    const started = startTasks();
    const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 1 });
    const client = await openEntry(started.tasks);
    started.store.before = (method) => {
      if (method === "create") throw new Error("no room");
    };
    for (let round = 0; round < 20; round += 1) {
      expect((await client.send("tools/call", { name: "work" })).error?.code).toBe(-32_603);
    }
    await vi.waitFor(() => expect(started.tasks.stats().attempts).toBe(0));
    expect(tool.runs.every(({ signal }) => signal.aborted)).toBe(true);
    takeErrors(started);
  });
});

// CASES part 2, tasks: "expiry marks failed but the worker runs on, signal not aborted, its result is thrown away".
test("a task that is gone stops its work, and says so to who asks", async () => {
  let nowMs = Date.now();
  const store = new MemoryTaskStore({ now: () => nowMs });
  const { tasks } = startTasks({ store, now: () => nowMs, retentionMs: 1_000, leaseMs: 100 });
  const tool = gatedTool(tasks, "work");
  const client = await openEntry(tasks);
  const taskId = await start(client, "work");
  nowMs += 86_400_000;
  const reply = await client.call(get, { taskId, waitSeconds: 25 });
  expect(reply).toMatchObject({ isError: true, structuredContent: { error: { code: "unknown_task" } } });
  // The lease lapsed long before the task did; whichever is noticed first is told.
  await expect
    .poll(() => tool.runs[0]?.signal.reason as unknown)
    .toMatchObject({ code: expect.stringMatching(/^(?:lease_lost|expired)$/) as unknown });
});
