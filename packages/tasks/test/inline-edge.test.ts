import { expect, test } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";

/**
 * A handler that ends around the end of its budget. The door fails for two answers, or for an answer that is half a handle;
 * what is left to show here is one run, and one outcome that is the same wherever it is read.
 */
async function finishAtTheEdge(rounds: number, turnsToWait: (round: number) => number): Promise<Set<string>> {
  const { tasks } = startTasks();
  let runs = 0;
  tasks.taskTool("edge", { inlineBudgetMs: 1 }, async (_args, task) => {
    runs += 1;
    const mine = `run ${runs}`;
    const { round } = task.meta as { round: number };
    const started = performance.now();
    // Timers fire no earlier than a millisecond, so the last stretch is waited for turn by turn.
    for (let turn = 0; turn < turnsToWait(round) || performance.now() - started < 0.8; turn += 1) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    return text(mine);
  });
  const http = new HttpDoor(tasks);
  const kinds = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const answer = await http.callTool("edge", {}, { meta: { round } });
    const result =
      answer.taskId === undefined ? answer : (await http.until(answer.taskId, "completed")).result;
    kinds.add(answer.resultType ?? "");
    expect(result?.content?.[0]?.text).toBe(`run ${round + 1}`);
  }
  expect(runs).toBe(rounds);
  return kinds;
}

test("a handler that ends at the very edge of its budget runs once and is answered once", async () => {
  const kinds = await finishAtTheEdge(400, (round) => round % 40);
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
