import { describe, expect, test } from "vitest";

import { errorOf, HttpDoor, resultOf } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { gatedTool, text } from "./support/tools.ts";
import { nextTurn } from "./support/turns.ts";

const undeclared = { declare: false };
const withToken = { declare: false, meta: { progressToken: "p1" } };

describe('fallback "wait": a client without tasks gets the result when the work is done', () => {
  test("as a plain result, however long it takes, and nothing is stored", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" });
    const answer = new HttpDoor(tasks).callTool("work", {}, undeclared);
    await expect.poll(() => tool.runs.length).toBe(1);
    await nextTurn();
    tool.gate.open();
    expect(await answer).toMatchObject({ resultType: "complete", content: [{ type: "text", text: "done" }] });
    expect(store.calls).toEqual([]);
  });

  test("progress goes out only with a token, and grows", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("count", { fallback: "wait" }, async (_args, task) => {
      await task.progress("starting");
      await task.progress({ done: 2, total: 9 });
      await task.progress({ done: 1, total: 9 });
      await task.progress({ message: "sorting" });
      await task.progress({ message: "writing", done: 8.5, total: 9 });
      return text("done");
    });
    const http = new HttpDoor(tasks);
    const silent = await http.send("tools/call", { name: "count" }, undeclared);
    expect(silent.notifications).toEqual([]);
    const { notifications } = await http.send("tools/call", { name: "count" }, withToken);
    expect(notifications.map(({ params }) => params)).toEqual([
      { progressToken: "p1", progress: 1, message: "starting" },
      { progressToken: "p1", progress: 2, total: 9 },
      { progressToken: "p1", progress: 3, message: "sorting" },
      { progressToken: "p1", progress: 8.5, total: 9, message: "writing" },
    ]);
  });

  test("a token that is 0 is a token", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("count", { fallback: "wait" }, async (_args, task) => {
      await task.progress("one");
      return text("done");
    });
    const reply = await new HttpDoor(tasks).send(
      "tools/call",
      { name: "count" },
      { declare: false, meta: { progressToken: 0 } },
    );
    expect(reply.notifications.map(({ params }) => params?.["progressToken"])).toEqual([0]);
  });

  test("progress that is said right before the result still comes before it, in every round", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("hasty", { fallback: "wait" }, (_args, task) => {
      void task.progress("last words");
      return text("done");
    });
    const http = new HttpDoor(tasks);
    for (let round = 0; round < 50; round += 1) {
      // The door fails when anything comes after the answer.
      const { notifications } = await http.send("tools/call", { name: "hasty" }, withToken);
      expect(notifications.length).toBeLessThanOrEqual(1);
    }
  });

  test("nothing is sent after the answer, though the handler goes on talking", async () => {
    const { tasks } = startTasks();
    const late: Promise<unknown>[] = [];
    tasks.taskTool("chatty", { fallback: "wait" }, async (_args, task) => {
      await task.progress("first");
      queueMicrotask(() => late.push(task.progress("in between").catch(() => "refused")));
      setImmediate(() => late.push(task.progress("after the end").catch(() => "refused")));
      return text("done");
    });
    const door = await StdioDoor.serve(tasks);
    await door.send("tools/call", { name: "chatty" }, withToken);
    const before = door.notifications.length;
    await expect.poll(() => late.length).toBe(2);
    await Promise.all(late);
    await door.send("server/discover");
    expect(door.notifications).toHaveLength(before);
  });

  test("a client that declares tasks gets no progress notifications, token or not", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, async (_args, task) => {
      await task.progress("half");
      return text("done");
    });
    const http = new HttpDoor(tasks);
    const reply = await http.send("tools/call", { name: "work" }, { meta: { progressToken: 1 } });
    expect(reply.notifications).toEqual([]);
    await http.until(resultOf(reply).taskId ?? "", "completed");
  });

  test("a protocol error is a JSON-RPC error, and a thrown one a tool error", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("fail", { fallback: "wait" }, () => {
      throw Object.assign(new Error("Broken"), { code: -32_000, data: 1 });
    });
    tasks.taskTool("throw", { fallback: "wait" }, () => {
      throw new Error("Cold");
    });
    const http = new HttpDoor(tasks);
    const error = errorOf(await http.send("tools/call", { name: "fail" }, undeclared));
    expect(error).toEqual({ code: -32_000, message: "Broken", data: 1 });
    expect(await http.callTool("throw", {}, undeclared)).toMatchObject({
      isError: true,
      content: text("Cold").content,
    });
  });

  test("a task that the handler ended itself is answered with its outcome", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("complete", { fallback: "wait" }, (_args, task) =>
      task.complete({ content: [{ type: "text", text: "mine" }] }),
    );
    tasks.taskTool("fail", { fallback: "wait" }, (_args, task) =>
      task.fail({ code: -32_000, message: "mine" }),
    );
    tasks.taskTool("cancel", { fallback: "wait" }, (_args, task) => task.cancelled("not needed"));
    const http = new HttpDoor(tasks);
    expect((await http.callTool("complete", {}, undeclared)).content).toEqual(text("mine").content);
    expect(errorOf(await http.send("tools/call", { name: "fail" }, undeclared))).toMatchObject({
      message: "mine",
    });
    const cancelled = errorOf(await http.send("tools/call", { name: "cancel" }, undeclared));
    expect(cancelled).toMatchObject({ code: -32_603, data: { retryable: true } });
  });

  test("a checkpoint is kept, and the client still waits for the result", async () => {
    const { tasks, store } = startTasks();
    tasks.taskTool("save", { fallback: "wait" }, async (_args, task) => {
      await task.saveCheckpoint(1);
      return text("done");
    });
    const result = await new HttpDoor(tasks).callTool("save", {}, undeclared);
    expect(result.content).toEqual(text("done").content);
    const [{ taskId } = { taskId: "" }] = store.calls;
    expect((await store.inner.get(taskId))?.status).toBe("completed");
  });
});
