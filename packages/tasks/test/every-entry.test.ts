/* What other tests show in full at one entry, in short at each: a seam could drop, add or turn around what passes through it. */
import { LongJobsError } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import type { Tasks, ToolHandler } from "../src/index.ts";
import { entries, start, until, words } from "./support/entries.ts";
import { startTasks } from "./support/started-tasks.ts";
import { askName, form, gatedTool, text } from "./support/tools.ts";

const [get, respond] = ["durable_task_get", "durable_task_respond"] as const;

function throwing(error: unknown): ToolHandler<Record<string, never>> {
  return () => {
    throw error;
  };
}

/** The same handler twice: answered within its call, and as a task. */
function twice(tasks: Tasks, name: string, handler: ToolHandler<Record<string, never>>): void {
  tasks.taskTool(`${name}_now`, { inlineBudgetMs: 60_000 }, handler);
  tasks.taskTool(`${name}_later`, { inlineBudgetMs: 0 }, handler);
}

describe.each(entries)("%s", (_name, open) => {
  test("P10: a tool error is a result with isError, from the call and from the task alike", async () => {
    const { tasks } = startTasks();
    const envelope = { code: "no_ink", message: "The ink is empty.", retryable: true };
    twice(tasks, "told", () => ({ ...text("no paper"), isError: true }));
    twice(tasks, "thrown", throwing(new Error("no paper")));
    twice(tasks, "coded", throwing(new LongJobsError("no_ink", envelope.message, { retryable: true })));
    const client = await open(tasks);
    for (const name of ["told", "thrown", "coded"]) {
      const now = await client.call(`${name}_now`);
      const taskId = await start(client, `${name}_later`);
      const later = await client.call(get, { taskId, waitSeconds: 5 });
      expect(now.isError).toBe(true);
      expect(later).toMatchObject({ isError: true, content: now.content });
      expect(later.structuredContent).toMatchObject({ status: "completed" });
      if (name !== "coded") expect(now.content).toEqual(text("no paper").content);
      else expect([now.structuredContent, later.structuredContent?.["result"]]).toEqual([envelope, envelope]);
    }
  });

  test("P10: a protocol error is a JSON-RPC error of the call, and fails the task with its code, message and data", async () => {
    const { tasks } = startTasks();
    const refused = Object.assign(new Error("Not today"), { code: -32_050, data: { recoveryHint: "Rest." } });
    twice(tasks, "refuse", throwing(refused));
    const client = await open(tasks);
    const { error } = await client.send("tools/call", { name: "refuse_now", arguments: {} });
    expect(error).toEqual({ code: -32_050, message: "Not today", data: { recoveryHint: "Rest." } });
    const taskId = await start(client, "refuse_later");
    expect(await client.call(get, { taskId, waitSeconds: 5 })).toMatchObject({
      isError: true,
      structuredContent: {
        status: "failed",
        error: { code: "-32050", message: "Not today", recoveryHint: "Rest." },
      },
    });
  });

  test("P26: one answer of two leaves the other open; a second one for the same key, or for no key, is refused", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) =>
      text(JSON.stringify(await task.requestInput({ a: askName, b: askName }))),
    );
    const client = await open(tasks);
    const taskId = await start(client, "ask");
    await until(client, taskId, "input_required");
    const answer = (answers: object) => client.call(respond, { taskId, answers });
    expect((await answer({ a: "first" })).structuredContent).toMatchObject({
      status: "input_required",
      questions: [{ key: "b" }],
    });
    for (const late of [{ a: "second" }, { nobody: "x" }])
      expect(await answer(late)).toMatchObject({
        isError: true,
        structuredContent: { error: { code: "invalid_input_response" } },
      });
    await answer({ b: "last" });
    const done = words(await until(client, taskId, "completed"));
    expect(JSON.parse(done)).toMatchObject({
      a: { content: { name: "first" } },
      b: { content: { name: "last" } },
    });
  });

  test("P28: an answer of the wrong type is a repairable error, and the question stays; decline needs no content", async () => {
    const { tasks } = startTasks();
    const seats = form("How many seats?", { seats: { type: "integer", maximum: 9 } });
    tasks.taskTool("book", {}, async (_args, task) =>
      text(JSON.stringify((await task.requestInput({ seats })).seats)),
    );
    const client = await open(tasks);
    for (const last of [{ response: 3 }, { action: "decline" }]) {
      const taskId = await start(client, "book");
      await until(client, taskId, "input_required");
      for (const response of ["many", 10, {}, ["1", "2"]]) {
        const refused = await client.call(respond, { taskId, response });
        expect(refused).toMatchObject({
          isError: true,
          structuredContent: {
            error: { recoveryHint: expect.stringContaining("How many seats?") as unknown },
          },
        });
      }
      await client.call(respond, { taskId, ...last });
      const done = words(await until(client, taskId, "completed"));
      expect(JSON.parse(done)).toEqual("action" in last ? last : { action: "accept", content: { seats: 3 } });
    }
  });

  test("P70: a working reply is small, and the same while nothing changes; a large result comes once", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const large = "x".repeat(200_000);
    tasks.taskTool("large", { inlineBudgetMs: 0 }, () => text(large));
    const client = await open(tasks);
    const taskId = await start(client, "work");
    await tool.runs[0]?.progress({ message: "y".repeat(5_000), done: 1, total: 3 });
    const poll = async (): Promise<string> => {
      const { content, structuredContent } = await client.call(get, { taskId });
      return JSON.stringify({ content, structuredContent });
    };
    const first = await poll();
    expect(first.length).toBeLessThan(600);
    expect(await poll()).toBe(first);
    const other = await start(client, "large");
    expect(JSON.stringify(await until(client, other, "completed")).split(large)).toHaveLength(2);
  });
});
