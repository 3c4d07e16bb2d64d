import { describe, expect, test } from "vitest";

import { entries, openEntry } from "./support/entries.ts";
import { walk } from "./support/scripted-model.ts";
import { startTasks } from "./support/started-tasks.ts";
import { form, text } from "./support/tools.ts";
import { elapse, stopClocks } from "./support/turns.ts";

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

describe("a model that obeys the texts, and knows nothing else, reaches the result", () => {
  test.for(entries)("%s: of a 2-minute job in at most 8 calls", async ([, open]) => {
    const { tasks } = startTasks({ waitPollMs: 1_000 });
    tasks.taskTool("report", {}, async (_args, task) => {
      for (let done = 1; done <= 120; done += 1) {
        await sleep(1_000);
        await task.progress({ message: "writing", done, total: 120 });
      }
      return text("the report");
    });
    const client = await open(tasks);
    stopClocks();
    const walking = walk(client, "report", {}, () => "nothing was asked");
    const passedMs = await elapse(walking, 250);
    const { calls, result } = await walking;
    expect(result.content).toEqual(text("the report").content);
    expect(calls.length).toBeLessThanOrEqual(8);
    expect(passedMs).toBeGreaterThanOrEqual(120_000);
    expect(passedMs).toBeLessThan(121_000);
  });

  test.for(entries)("%s: of one that asks in the middle, in at most 8 calls", async ([, open]) => {
    const { tasks } = startTasks({ waitPollMs: 1_000 });
    tasks.taskTool("report", {}, async (_args, task) => {
      await sleep(60_000);
      const tone = await task.ask({ prompt: "Which tone?", choices: ["formal", "friendly"] });
      await sleep(60_000);
      return text(`a ${tone} report`);
    });
    const client = await open(tasks);
    const asked: string[] = [];
    stopClocks();
    const walking = walk(client, "report", {}, (question) => {
      asked.push(question);
      return "Friendly";
    });
    await elapse(walking, 250);
    const { calls, result } = await walking;
    expect(asked).toEqual(['Which tone? Allowed answers: "formal", "friendly".']);
    expect(result.content).toEqual(text("a friendly report").content);
    expect(calls.length).toBeLessThanOrEqual(8);
  });

  test("of a job with several questions at once", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("trip", {}, async (_args, task) => {
      const [city, days] = await Promise.all([
        task.ask({ prompt: "Which city?" }),
        task.requestInput({ days: form("How many days?", { n: { type: "integer" } }) }),
      ]);
      return text(`${city} ${JSON.stringify(days.days["content"])}`);
    });
    const client = await openEntry(tasks);
    const { result, calls } = await walk(client, "trip", {}, (question) =>
      question.includes("city") ? "Rome" : "3",
    );
    expect(result.content).toEqual(text('Rome {"n":3}').content);
    expect(calls.length).toBeLessThanOrEqual(6);
  });

  test("of a job that fails, and of one whose result is an error", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("fail", { inlineBudgetMs: 0 }, (_args, task) =>
      task.fail({ code: 1, message: "no paper" }),
    );
    tasks.taskTool("wrong", { inlineBudgetMs: 0 }, () => ({ ...text("no ink"), isError: true }));
    const client = await openEntry(tasks);
    for (const [name, said] of [
      ["fail", "no paper"],
      ["wrong", "no ink"],
    ] as const) {
      const { result } = await walk(client, name, {}, () => "");
      expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(said) }] });
    }
  });

  test("with names and texts of the server's own", async () => {
    const { tasks } = startTasks({ fallbackTools: { prefix: "job", maxWaitSeconds: 3 } });
    tasks.taskTool("ask", {}, async (_args, task) => text(await task.ask({ prompt: "Who?" })));
    const { calls, result } = await walk(await openEntry(tasks), "ask", {}, () => "Ada");
    expect(result.content).toEqual(text("Ada").content);
    expect(new Set(calls)).toEqual(new Set(["ask", "job_get", "job_respond"]));
  });
});
