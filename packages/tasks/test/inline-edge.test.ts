import { expect, test } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
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
