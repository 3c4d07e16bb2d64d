import { expect, test } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
import { entries, openEntry, until } from "./support/entries.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { nextTurn } from "./support/turns.ts";

/**
 * The door fails for two answers, and for an answer that is half a handle. What is left to show is one run, and
 * one outcome that is the same wherever it is read.
 */
test("a handler that ends around the end of its budget runs once and is answered once", async () => {
  const { tasks } = startTasks();
  let runs = 0;
  tasks.taskTool("edge", { inlineBudgetMs: 1 }, async (_args, task) => {
    const mine = `run ${(runs += 1)}`;
    const { workMs } = task.meta as { workMs: number };
    // Turn by turn: a timer could not end between two milliseconds.
    for (const started = performance.now(); performance.now() - started < workMs;) await nextTurn();
    return text(mine);
  });
  const http = new HttpDoor(tasks);
  const kinds = new Set<string>();
  for (let round = 1; round <= 400; round += 1) {
    // From 0 to 2 ms, in steps of 0.05.
    const answer = await http.callTool("edge", {}, { meta: { workMs: (round % 41) / 20 } });
    const result =
      answer.taskId === undefined ? answer : (await http.until(answer.taskId, "completed")).result;
    kinds.add(answer.resultType ?? "");
    expect(result?.content?.[0]?.text).toBe(`run ${round}`);
  }
  expect(runs).toBe(400);
  expect([...kinds].toSorted(), "both sides of the edge were met").toEqual(["complete", "task"]);
});

test("the same, with a timer of the budget's own length", async () => {
  const { tasks, store } = startTasks();
  let runs = 0;
  tasks.taskTool("edge", { inlineBudgetMs: 5 }, async () => {
    runs += 1;
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    return text("done");
  });
  const http = new HttpDoor(tasks);
  const answers = await Promise.all(Array.from({ length: 100 }, () => http.callTool("edge")));
  for (const answer of answers) {
    const result =
      answer.taskId === undefined ? answer : (await http.until(answer.taskId, "completed")).result;
    expect(result?.content).toEqual([{ type: "text", text: "done" }]);
  }
  expect(runs).toBe(100);
  const created = store.calls.filter(({ method }) => method === "create").length;
  expect(created).toBe(answers.filter(({ taskId }) => taskId !== undefined).length);
});

test.for(entries)("%s: the same for a client that follows with tools", async ([, open]) => {
  const { tasks, store } = startTasks();
  let runs = 0;
  tasks.taskTool("edge", { inlineBudgetMs: 5 }, async () => {
    const mine = `run ${(runs += 1)}`;
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    return { ...text(mine), structuredContent: { mine } };
  });
  const client = await open(tasks);
  const answers = await Promise.all(Array.from({ length: 60 }, () => client.call("edge")));
  const said: string[] = [];
  for (const { content, structuredContent } of answers) {
    const taskId = structuredContent?.["taskId"] as string | undefined;
    const mine = structuredContent?.["mine"] as string;
    // Either a handle or a result, never parts of both.
    if (taskId === undefined) expect(content).toEqual(text(mine).content);
    else expect(structuredContent).toEqual({ taskId, status: "working" });
    const result = taskId === undefined ? { content } : await until(client, taskId, "completed");
    said.push(result.content?.[0]?.text ?? "");
  }
  expect(runs).toBe(60);
  expect(said.toSorted()).toEqual(Array.from({ length: 60 }, (_unused, n) => `run ${n + 1}`).toSorted());
  const created = store.calls.filter(({ method }) => method === "create").length;
  expect(created).toBe(answers.filter((answer) => "taskId" in (answer.structuredContent ?? {})).length);
});

test("turn by turn around the edge: one run, and one outcome that is the same wherever it is read", async () => {
  const { tasks } = startTasks();
  let runs = 0;
  tasks.taskTool("edge", { inlineBudgetMs: 1 }, async (_args, task) => {
    const mine = `run ${(runs += 1)}`;
    const { workMs } = task.meta as { workMs: number };
    for (const started = performance.now(); performance.now() - started < workMs;) await nextTurn();
    return text(mine);
  });
  const http = new HttpDoor(tasks);
  const client = await openEntry(tasks);
  const kinds = new Set<string>();
  for (let round = 1; round <= 200; round += 1) {
    const meta = { workMs: (round % 41) / 20 };
    const answer = await http.callTool("edge", {}, { declare: false, meta });
    const taskId = answer.structuredContent?.["taskId"] as string | undefined;
    const result = taskId === undefined ? answer : await until(client, taskId, "completed");
    kinds.add(taskId === undefined ? "result" : "handle");
    expect(result.content?.[0]?.text).toBe(`run ${round}`);
  }
  expect(runs).toBe(200);
  expect([...kinds].toSorted(), "both sides of the edge were met").toEqual(["handle", "result"]);
});
