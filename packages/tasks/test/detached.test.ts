import { describe, expect, test } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
import { keyMeta } from "./support/keyed-clients.ts";
import { NodeHttp } from "./support/node-http.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { askName, gatedTool, text, type GatedTool } from "./support/tools.ts";
import { gate, nextTurn } from "./support/turns.ts";

/** Resolves to the run of a tool, when there is one, and when its signal has been aborted. */
async function runOf(tool: GatedTool) {
  await expect.poll(() => tool.runs.length).toBe(1);
  const [run] = tool.runs;
  if (run === undefined) throw new Error("The tool did not run.");
  return run;
}

describe("P12: before anything was sent, a disconnect ends the work", () => {
  test("over a real socket, inside the budget", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const http = await NodeHttp.listen(new HttpDoor(tasks));
    const client = new AbortController();
    const call = http.send("tools/call", { name: "work" }, { signal: client.signal });
    const run = await runOf(tool);
    client.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => run.signal.reason as unknown).toMatchObject({ code: "request_cancelled" });
    expect(store.calls).toEqual([]);
    await expect.poll(() => tasks.stats().attempts).toBe(0);
  });

  test("over a real socket, for a client that waits to the end", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" });
    const http = await NodeHttp.listen(new HttpDoor(tasks));
    const client = new AbortController();
    const options = { declare: false, meta: { progressToken: 1 }, signal: client.signal };
    const call = http.send("tools/call", { name: "work" }, options);
    const run = await runOf(tool);
    await run.progress("half");
    client.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => run.signal.reason as unknown).toMatchObject({ code: "request_cancelled" });
  });

  test("while the task is being recorded: the handler never starts, and the task ends as cancelled", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0 });
    const creating = gate();
    const create = gate();
    store.before = async (method) => {
      if (method !== "create") return;
      creating.open();
      await create.opened;
    };
    const http = await NodeHttp.listen(new HttpDoor(tasks));
    const client = new AbortController();
    const call = http.send("tools/call", { name: "work" }, { signal: client.signal });
    await creating.opened;
    client.abort();
    await expect(call).rejects.toThrow();
    // The server has heard of it when its next request has been answered.
    await http.send("server/discover", {});
    await nextTurn();
    create.open();
    const [{ taskId } = { taskId: "" }] = store.calls;
    await expect.poll(async () => (await store.inner.get(taskId))?.status).toBe("cancelled");
    expect(tool.runs).toEqual([]);
  });

  test("a request that is cancelled over stdio", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const door = await StdioDoor.serve(tasks);
    const requestId = await door.post("tools/call", { name: "work" });
    const run = await runOf(tool);
    await door.notify("notifications/cancelled", { requestId, reason: "enough" });
    await expect.poll(() => run.signal.reason as unknown).toMatchObject({ code: "request_cancelled" });
  });

  test("closing a stdio connection", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const door = await StdioDoor.serve(tasks);
    await door.post("tools/call", { name: "work" });
    const run = await runOf(tool);
    await door.close();
    await expect.poll(() => run.signal.reason as unknown).toMatchObject({ code: "request_cancelled" });
  });

  test("a handler that ignores its signal still ends: its result goes nowhere", async () => {
    const { tasks } = startTasks();
    const finish = gate();
    const started = gate();
    tasks.taskTool("stubborn", { inlineBudgetMs: 60_000 }, async () => {
      started.open();
      await finish.opened;
      return text("too late");
    });
    const http = await NodeHttp.listen(new HttpDoor(tasks));
    const client = new AbortController();
    const call = http.send("tools/call", { name: "stubborn" }, { signal: client.signal });
    await started.opened;
    client.abort();
    await expect(call).rejects.toThrow();
    finish.open();
    await expect.poll(() => tasks.stats().attempts).toBe(0);
  });
});

describe("P12: after the handle, nothing that happens to a connection ends the work", () => {
  test("the answer itself, and closing every connection of a real server", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const { result } = await http.send("tools/call", { name: "work" });
    const run = await runOf(tool);
    http.closeConnections();
    // A round trip of a new connection: the old ones have been noticed as closed by then.
    await http.send("tasks/get", { taskId: result?.taskId });
    expect(run.signal.aborted).toBe(false);
    tool.gate.open();
    await door.until(result?.taskId ?? "", "completed");
  });

  test("the handle that a question gave, whose request had a long budget left", async () => {
    const { tasks } = startTasks();
    const seen: AbortSignal[] = [];
    tasks.taskTool("ask", { inlineBudgetMs: 60_000 }, async (_args, task) => {
      seen.push(task.signal);
      await task.requestInput({ who: askName });
      return text("done");
    });
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const { result } = await http.send("tools/call", { name: "ask" });
    http.closeConnections();
    const taskId = result?.taskId ?? "";
    await http.send("tasks/get", { taskId });
    expect(seen[0]?.aborted).toBe(false);
    await door.update(taskId, { who: { action: "cancel" } });
    await door.until(taskId, "completed");
  });

  test("cancelling the request, and the end of the session, over stdio", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const door = await StdioDoor.serve(tasks);
    const { id, result } = await door.send("tools/call", { name: "work" });
    const run = await runOf(tool);
    await door.notify("notifications/cancelled", { requestId: id });
    await door.send("tasks/get", { taskId: result?.taskId });
    await door.close();
    await nextTurn();
    expect(run.signal.aborted).toBe(false);
    tool.gate.open();
    const later = await StdioDoor.serve(tasks);
    await expect
      .poll(async () => (await later.send("tasks/get", { taskId: result?.taskId })).result?.status)
      .toBe("completed");
  });
});

describe("P12: what does end the work has a reason that can be told apart", () => {
  test("tasks/cancel", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("work");
    const run = await runOf(tool);
    for (let times = 0; times < 50; times += 1) await http.cancel(taskId);
    expect(run.signal.reason).toMatchObject({ code: "cancelled" });
    await http.until(taskId, "cancelled");
    await http.cancel(taskId);
  });

  test("shutdown, which leaves the task alone and tells an inline caller to come again", async () => {
    const started = startTasks();
    const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 60_000 });
    const call = new HttpDoor(started.tasks).send("tools/call", { name: "work" });
    const run = await runOf(tool);
    await started.tasks.close({ shutdownGraceMs: 1_000 });
    expect(run.signal.reason).toMatchObject({ code: "shutdown" });
    const { message } = await call;
    expect(message.error).toMatchObject({ code: -32_603, data: { code: "shutdown", retryable: true } });
  });

  test.for([
    ["", {}],
    [", for a call with a key", { meta: { [keyMeta]: "k1" } }],
  ] as const)(
    "shutdown while the task is being recorded%s: its handler never starts, and it has a handle to come again with",
    async ([, options]) => {
      const unhandled: unknown[] = [];
      const note = (reason: unknown): unknown => unhandled.push(reason);
      process.on("unhandledRejection", note);
      const started = startTasks();
      const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 0 });
      const creating = gate();
      const create = gate();
      started.store.before = async (method, taskId) => {
        if (method !== "create" || taskId.includes(".")) return;
        creating.open();
        await create.opened;
      };
      const call = new HttpDoor(started.tasks).callTool("work", {}, options);
      await creating.opened;
      await started.tasks.close();
      create.open();
      const { taskId = "" } = await call;
      await expect
        .poll(() => started.store.inner.get(taskId))
        .toMatchObject({ status: "working", released: true });
      expect(tool.runs).toEqual([]);
      // A rejection that nobody handles is told after the promises that are ready.
      await nextTurn();
      process.off("unhandledRejection", note);
      expect(unhandled).toEqual([]);
      expect(takeErrors(started)).toMatchObject([{ code: "store_unavailable" }]);
    },
  );

  test("P14: a handler that ignores a cancel may still complete, and its result stands", async () => {
    const { tasks } = startTasks();
    const finish = gate();
    tasks.taskTool("stubborn", { inlineBudgetMs: 0 }, async () => {
      await finish.opened;
      return text("done all the same");
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("stubborn");
    await http.cancel(taskId);
    expect((await http.get(taskId)).status).toBe("working");
    finish.open();
    expect((await http.until(taskId, "completed")).result?.content).toEqual(
      text("done all the same").content,
    );
  });
});
