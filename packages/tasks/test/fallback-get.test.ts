import { describe, expect, test, vi } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
import { entries, openEntry, start, until, words } from "./support/entries.ts";
import { NodeHttp } from "./support/node-http.ts";
import { untilUnwatched, type SpyStore } from "./support/spy-store.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { askName, form, gatedTool, greeter, text } from "./support/tools.ts";
import { elapse, gate, nextTurn, stopClocks } from "./support/turns.ts";
import type { WireResult } from "./support/wire.ts";

const get = "durable_task_get";

/** Resolves when a call that was made just now has read the task, and reads it no more: it waits. */
async function untilWaiting(store: SpyStore): Promise<void> {
  const before = store.calls.length;
  await expect.poll(() => store.calls.length).toBeGreaterThan(before);
  await untilSettled(store);
}

/** Resolves when nobody reads or writes any more. */
async function untilSettled(store: SpyStore): Promise<void> {
  for (let seen = -1; seen !== store.calls.length;) {
    seen = store.calls.length;
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  }
}

describe("a tool that takes longer than its budget goes on as a task", () => {
  test.for(entries)("%s: the answer has the id and says what to do next", async ([, open]) => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await open(tasks);
    const started = await client.call("work");
    expect(started.isError).toBeUndefined();
    const taskId = started.structuredContent?.["taskId"];
    expect(started.structuredContent).toEqual({ taskId, status: "working" });
    expect(words(started)).toContain("NOT finished");
    expect(words(started)).toContain(`${get} with {"taskId":"${String(taskId)}","waitSeconds":25}`);
    expect(await store.inner.get(String(taskId))).toMatchObject({ status: "working" });
    tool.gate.open();
    const done = await until(client, String(taskId), "completed");
    expect(done.content).toEqual(text("done").content);
    expect(tool.runs).toHaveLength(1);
  });

  test.for(entries)("%s: the result comes at once when it is there within the budget", async ([, open]) => {
    const { tasks, store } = startTasks();
    tasks.taskTool("quick", {}, () => ({ ...text("quick"), structuredContent: { n: 1 } }));
    expect(await (await open(tasks)).call("quick")).toMatchObject({
      ...text("quick"),
      structuredContent: { n: 1 },
    });
    expect(store.calls).toEqual([]);
  });

  test("a handler that ends its task itself is answered with its outcome by the next call", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("complete", {}, (_args, task) =>
      task.complete({ content: [{ type: "text", text: "mine" }] }),
    );
    tasks.taskTool("fail", {}, (_args, task) => task.fail({ code: -32_000, message: "mine" }));
    tasks.taskTool("cancel", {}, (_args, task) => task.cancelled("not needed"));
    const client = await openEntry(tasks);
    const outcomeOf = async (name: string): Promise<WireResult> =>
      client.call(get, { taskId: await start(client, name), waitSeconds: 5 });
    expect((await outcomeOf("complete")).content).toEqual(text("mine").content);
    expect(await outcomeOf("fail")).toMatchObject({
      isError: true,
      structuredContent: { status: "failed", error: { code: "-32000", message: "mine" } },
    });
    expect(await outcomeOf("cancel")).toMatchObject({
      structuredContent: { status: "cancelled", statusMessage: "not needed" },
    });
  });

  test("a create that the store refuses is a JSON-RPC error, and nothing goes on", async () => {
    const started = startTasks();
    const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 1 });
    started.store.before = (method) => {
      if (method === "create") throw new Error("/var/data is full");
    };
    const { error } = await (await openEntry(started.tasks)).send("tools/call", { name: "work" });
    expect(error).toMatchObject({ code: -32_603 });
    expect(JSON.stringify(error)).not.toContain("/var");
    expect(tool.runs[0]?.signal.aborted).toBe(true);
    started.errors.length = 0;
  });
});

describe("P69: one call waits for what a model can act on", () => {
  test.for(entries)("%s: it ends early when the work ends", async ([, open]) => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await open(tasks);
    const taskId = await start(client, "work");
    const waiting = client.call(get, { taskId, waitSeconds: 25 });
    await nextTurn();
    tool.gate.open();
    expect((await waiting).content).toEqual(text("done").content);
  });

  test.for(entries)("%s: it ends early when a question comes", async ([, open]) => {
    const { tasks } = startTasks();
    const ready = gate();
    tasks.taskTool("ask", { inlineBudgetMs: 0 }, async (_args, task) => {
      await ready.opened;
      return text(await task.ask({ prompt: "Which colour?", choices: ["red", "blue"] }));
    });
    const client = await open(tasks);
    const taskId = await start(client, "ask");
    const waiting = client.call(get, { taskId, waitSeconds: 25 });
    await nextTurn();
    ready.open();
    const asked = await waiting;
    expect(asked.structuredContent).toMatchObject({
      status: "input_required",
      questions: [{ prompt: "Which colour?", choices: ["red", "blue"] }],
    });
    expect(words(asked)).toContain('Which colour? Allowed answers: "red", "blue".');
    expect(words(asked)).toContain(`durable_task_respond {"taskId":"${taskId}","response":"…"}`);
    await client.call("durable_task_respond", { taskId, response: "red" });
    expect((await until(client, taskId, "completed")).content).toEqual(text("red").content);
  });

  test("one that already has a question, or an end, is answered at once", async () => {
    const { tasks } = startTasks();
    greeter(tasks, "greet");
    echoLater();
    const client = await openEntry(tasks);
    const asking = await start(client, "greet");
    const done = await start(client, "later");
    await until(client, done, "completed");
    vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
    for (const [taskId, status] of [
      [asking, "input_required"],
      [done, "completed"],
    ] as const) {
      const result = await client.call(get, { taskId, waitSeconds: 25 });
      expect(result.structuredContent?.["status"]).toBe(status);
    }

    function echoLater(): void {
      tasks.taskTool("later", { inlineBudgetMs: 0 }, () => text("done"));
    }
  });

  test("without waitSeconds, and with 0, it does not wait", async () => {
    const { tasks } = startTasks();
    gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
    for (const args of [{ taskId }, { taskId, waitSeconds: 0 }]) {
      expect((await client.call(get, args)).structuredContent?.["status"]).toBe("working");
    }
  });

  test("a wait is cut to the ceiling, whatever was asked for", async () => {
    const { tasks } = startTasks({ waitPollMs: 1_000, fallbackTools: { maxWaitSeconds: 10 } });
    gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    for (const waitSeconds of [10, 11, 1e9, Number.MAX_VALUE]) {
      stopClocks();
      const waiting = client.call(get, { taskId, waitSeconds });
      const waitedMs = await elapse(waiting, 100);
      expect(waitedMs).toBeGreaterThanOrEqual(10_000);
      expect(waitedMs).toBeLessThanOrEqual(10_200);
      expect((await waiting).structuredContent?.["status"]).toBe("working");
      vi.useRealTimers();
    }
  });

  test(
    "waitSeconds: 20 against a 7 s job: the answer is there within 300 ms of its end",
    { timeout: 30_000 },
    async () => {
      const { tasks } = startTasks();
      let endedAt = Number.NaN;
      tasks.taskTool("seven", { inlineBudgetMs: 0 }, async (_args, task) => {
        await new Promise((resolve) => {
          setTimeout(resolve, 7_000);
        });
        await task.progress({ done: 1, total: 1 });
        endedAt = performance.now();
        return text("done");
      });
      const client = await openEntry(tasks);
      const from = performance.now();
      const taskId = await start(client, "seven");
      const result = await client.call(get, { taskId, waitSeconds: 20 });
      const answeredAt = performance.now();
      expect(result.content).toEqual(text("done").content);
      expect(answeredAt - endedAt).toBeLessThan(300);
      expect(answeredAt - from).toBeGreaterThan(6_990);
    },
  );

  test("progress alone does not end a wait, and a task that reports does not make the store busy", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 60_000 });
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    let ended = false;
    const waiting = client.call(get, { taskId, waitSeconds: 25 }).finally(() => (ended = true));
    await untilWaiting(store);
    const before = store.calls.length;
    for (let done = 1; done <= 20; done += 1) await tool.runs[0]?.progress({ done, total: 20 });
    await nextTurn();
    expect(ended).toBe(false);
    const calls = store.calls.slice(before);
    expect(calls.filter(({ method }) => method === "get").length).toBeLessThanOrEqual(20 * 6);
    tool.gate.open();
    await waiting;
  });

  test("while nothing happens a wait costs the store one look per waitPollMs, and holds nothing of it", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 1_000 });
    gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    stopClocks();
    const from = store.calls.length;
    const reads = { open: 0, most: 0 };
    store.before = async () => {
      reads.open += 1;
      reads.most = Math.max(reads.most, reads.open);
      await nextTurn();
      reads.open -= 1;
    };
    const waiting = client.call(get, { taskId, waitSeconds: 20 });
    const steps = { all: 0, idle: 0 };
    await elapse(waiting, 250, () => {
      steps.all += 1;
      if (reads.open === 0) steps.idle += 1;
    });
    expect((await waiting).structuredContent?.["status"]).toBe("working");
    expect(store.calls.slice(from).every(({ method }) => method === "get")).toBe(true);
    // Two looks for each poll: the wait's own, and the one of the work that listens to the same hints.
    expect(store.calls.length - from).toBeLessThanOrEqual(2 * 20 + 8);
    expect(reads.most).toBeLessThanOrEqual(2);
    expect(steps.idle).toBeGreaterThan(steps.all / 2);
  });

  test("a client that ends its call over stdio ends the wait, and not the work", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 5 });
    const tool = gatedTool(tasks, "work");
    const door = await StdioDoor.serve(tasks);
    const { result } = await door.send("tools/call", { name: "work" }, { declare: false });
    const taskId = result?.structuredContent?.["taskId"] as string;
    const params = { name: get, arguments: { taskId, waitSeconds: 25 } };
    const requestId = await door.post("tools/call", params, { declare: false });
    await expect.poll(() => store.calls.length).toBeGreaterThan(5);
    const before = await store.inner.get(taskId);
    await door.notify("notifications/cancelled", { requestId, reason: "enough" });
    await untilUnwatched(store);
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    expect(await store.inner.get(taskId)).toEqual(before);
    tool.gate.open();
    await expect
      .poll(async () => (await door.send("tasks/get", { taskId })).result?.status)
      .toBe("completed");
  });

  test("a client that hangs up on a real socket ends the wait, and not the work", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 5 });
    const tool = gatedTool(tasks, "work");
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const client = new AbortController();
    const taskId = await door.startTask("work");
    const params = { name: get, arguments: { taskId, waitSeconds: 25 } };
    const call = http.send("tools/call", params, { declare: false, signal: client.signal });
    await expect.poll(() => store.calls.length).toBeGreaterThan(5);
    client.abort();
    await expect(call).rejects.toThrow();
    await untilUnwatched(store);
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    tool.gate.open();
    await door.until(taskId, "completed");
  });

  test("a server that closes ends the waits, and tells the model to come again", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 60_000 });
    gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    const waiting = client.call(get, { taskId, waitSeconds: 25 });
    await untilWaiting(store);
    await tasks.close({ shutdownGraceMs: 1_000 });
    const result = await waiting;
    expect(result.isError).toBe(true);
    expect(result.structuredContent?.["error"]).toMatchObject({ recoveryHint: expect.any(String) });
  });

  test("a hundred waits for one task all end with it", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    const waits = Array.from({ length: 100 }, () => client.call(get, { taskId, waitSeconds: 25 }));
    await nextTurn();
    tool.gate.open();
    for (const result of await Promise.all(waits)) expect(result.content).toEqual(text("done").content);
  });
});

describe("progress notifications flow while a call is open, and only then", () => {
  test.for(entries)("%s: with a token", async ([, open]) => {
    const { tasks, store } = startTasks({ waitPollMs: 60_000 });
    const tool = gatedTool(tasks, "work");
    const client = await open(tasks);
    const taskId = await start(client, "work");
    const [run] = tool.runs;
    await run?.progress({ message: "reading", done: 1, total: 4 });
    const waiting = client.call(get, { taskId, waitSeconds: 25 }, { progressToken: "p1" });
    await untilWaiting(store);
    await run?.progress({ message: "sorting", done: 2, total: 4 });
    await untilSettled(store);
    await run?.progress({ message: "writing", done: 3, total: 4 });
    await untilSettled(store);
    tool.gate.open();
    await waiting;
    const sent = client.progress.map(({ params }) => params);
    expect(sent[0]).toEqual({ progressToken: "p1", progress: 1, total: 4, message: "reading" });
    expect(sent.map((params) => params?.["progress"])).toEqual([1, 2, 3]);
  });

  test.for(entries)("%s: none without a token, and none after the answer", async ([, open]) => {
    const { tasks, store } = startTasks({ waitPollMs: 60_000 });
    const tool = gatedTool(tasks, "work");
    const client = await open(tasks);
    // The token belongs to the call that started the work, and that call is over.
    const taskId = await start(client, "work", {}, { progressToken: "old" });
    const [run] = tool.runs;
    await run?.progress({ done: 1, total: 4 });
    const waiting = client.call(get, { taskId, waitSeconds: 25 });
    await untilWaiting(store);
    await run?.progress({ done: 2, total: 4 });
    await untilSettled(store);
    tool.gate.open();
    await waiting;
    await client.send("tools/list");
    expect(client.progress).toEqual([]);
  });

  // CASES part 2, tasks: "progress sent after the tools/call response with the old progressToken".
  test("a token whose call was answered is never used again, though the work goes on reporting", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const door = await StdioDoor.serve(tasks);
    const options = { declare: false, meta: { progressToken: "p1" } };
    const { result } = await door.send("tools/call", { name: "work" }, options);
    const taskId = result?.structuredContent?.["taskId"];
    await tool.runs[0]?.progress({ done: 1, total: 4 });
    const poll = { name: get, arguments: { taskId } };
    await door.send("tools/call", poll, { declare: false, meta: { progressToken: "p2" } });
    const before = door.notifications.length;
    await tool.runs[0]?.progress({ done: 2, total: 4 });
    await tool.runs[0]?.progress({ done: 3, total: 4 });
    await door.send("server/discover");
    expect(door.notifications).toHaveLength(before);
  });

  test("what did not change is not sent twice", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 60_000 });
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    const [run] = tool.runs;
    await run?.progress("thinking");
    const waiting = client.call(get, { taskId, waitSeconds: 25 }, { progressToken: 1 });
    await untilWaiting(store);
    // Each checkpoint is a change of the record that wakes the wait.
    for (let step = 0; step < 5; step += 1) {
      const now = Date.now();
      // A change is told by its time, in milliseconds.
      await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(now);
      await run?.saveCheckpoint(step);
      await untilSettled(store);
    }
    tool.gate.open();
    await waiting;
    expect(client.progress.map(({ params }) => params?.["message"])).toEqual(["thinking"]);
  });
});

test("two questions at once are told apart by key, with their forms", async () => {
  const { tasks } = startTasks();
  tasks.taskTool("ask", {}, async (_args, task) => {
    const requests = {
      who: askName,
      trip: form("Where to?", { city: { type: "string" }, days: { type: "integer" } }),
    };
    return { content: [], structuredContent: await task.requestInput(requests) };
  });
  const client = await openEntry(tasks);
  const taskId = await start(client, "ask");
  const asked = await client.call(get, { taskId, waitSeconds: 5 });
  const questions = asked.structuredContent?.["questions"] as { key: string; schema?: object }[];
  expect(questions.map(({ key }) => key).toSorted()).toEqual(["trip", "who"]);
  expect(words(asked)).toContain("who: Your name?");
  // The fields are in the text: many hosts show a model nothing else.
  expect(words(asked)).toMatch(/trip: Where to\?.*city.*days \(integer\)/);
  expect(words(asked)).toContain('"answers":');
  const answers = { who: "Ada", trip: { city: "Rome", days: 3 } };
  const taken = await client.call("durable_task_respond", { taskId, answers });
  expect(taken.isError, words(taken)).toBeUndefined();
  const done = await until(client, taskId, "completed");
  expect(done.structuredContent?.["result"]).toEqual({
    who: { action: "accept", content: { name: "Ada" } },
    trip: { action: "accept", content: { city: "Rome", days: 3 } },
  });
});

describe("P12: after the handle nothing that happens to a connection ends the work", () => {
  test("closing every connection of a real server", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const { result } = await http.send("tools/call", { name: "work" }, { declare: false });
    const taskId = result?.structuredContent?.["taskId"];
    http.closeConnections();
    // A round trip of a new connection: the old ones have been noticed as closed by then.
    await http.send("tools/call", { name: get, arguments: { taskId } }, { declare: false });
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    tool.gate.open();
    const done = await http.send(
      "tools/call",
      { name: get, arguments: { taskId, waitSeconds: 5 } },
      { declare: false },
    );
    expect(done.result?.content).toEqual(text("done").content);
  });

  test("the end of a session of 2025-11-25 over stdio: a later one takes the task up", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const first = await StdioDoor.serve(tasks);
    await first.initialize();
    const { result } = await first.send("tools/call", { name: "work", arguments: {} });
    await first.close();
    await nextTurn();
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    tool.gate.open();
    const later = await StdioDoor.serve(tasks);
    await later.initialize();
    const taskId = result?.structuredContent?.["taskId"];
    const done = await later.send("tools/call", { name: get, arguments: { taskId, waitSeconds: 5 } });
    expect(done.result?.content).toEqual(text("done").content);
  });
});

test("P29: a question that waits 54 minutes for its answer trips nothing", async () => {
  const { tasks } = startTasks({ retentionMs: 60_000, leaseMs: 1_000, waitPollMs: 10_000 });
  tasks.taskTool("ask", {}, async (_args, task) => text(await task.ask({ prompt: "Still there?" })));
  const client = await openEntry(tasks);
  const taskId = await start(client, "ask");
  await until(client, taskId, "input_required");
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"],
  });
  await vi.advanceTimersByTimeAsync(54 * 60_000);
  expect((await client.call(get, { taskId })).structuredContent).toMatchObject({ status: "input_required" });
  const reply = await client.call("durable_task_respond", { taskId, response: "yes" });
  expect(reply.isError, words(reply)).toBeUndefined();
  vi.useRealTimers();
  expect((await until(client, taskId, "completed")).content).toEqual(text("yes").content);
});
