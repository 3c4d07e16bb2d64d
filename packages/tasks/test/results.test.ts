import { describe, expect, test } from "vitest";
import { z } from "zod";

import type { ToolResult } from "../src/index.ts";
import { HttpDoor } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import type { WireResult } from "./support/wire.ts";

const outputSchema = z.object({ total: z.number() });

/** What a tool answers with, inline and as a task. */
async function answers(
  result: unknown,
  config: { outputSchema?: typeof outputSchema } = {},
): Promise<[WireResult, WireResult]> {
  const { tasks } = startTasks();
  tasks.taskTool("work", { ...config, inlineBudgetMs: 60_000 }, () => result as ToolResult);
  const called = await new HttpDoor(tasks).callTool("work");
  const { _meta, ...inline } = called as WireResult & { _meta?: unknown };
  const { tasks: others } = startTasks();
  others.taskTool("work", { ...config, inlineBudgetMs: 0 }, () => result as ToolResult);
  const http = new HttpDoor(others);
  const task = await http.until(await http.startTask("work"), "completed");
  return [inline, task.result ?? {}];
}

/** The answer of a tool that answers alike both ways. */
async function answer(result: unknown, config?: { outputSchema?: typeof outputSchema }): Promise<WireResult> {
  const [inline, task] = await answers(result, config);
  expect(inline).toEqual(task);
  return task;
}

describe("a result is checked as the SDK checks one, inline and as a task", () => {
  test("content that is missing is empty", async () => {
    expect(await answer({})).toEqual({ content: [], resultType: "complete" });
  });

  test("members that are undefined are members that are not there, at any depth", async () => {
    const note = { type: "text", text: "hi", annotations: undefined };
    const given = {
      content: [note],
      isError: undefined,
      structuredContent: { list: [{ a: 1, b: undefined }] },
    };
    expect(await answer(given)).toEqual({
      content: [{ type: "text", text: "hi" }],
      structuredContent: { list: [{ a: 1 }] },
      resultType: "complete",
    });
  });

  test("the author's object is not changed by it", async () => {
    const given = Object.freeze({ content: Object.freeze([]), structuredContent: { a: undefined } });
    await answer(given);
    expect(given.structuredContent).toHaveProperty("a");
  });

  test.for([
    ["nothing", undefined],
    ["null", null],
    ["text", "done"],
    ["an array", []],
    ["content that is text", { content: "done" }],
    ["content of an unknown shape", { content: [{ type: "text" }] }],
    ["an isError that is text", { content: [], isError: "yes" }],
    ["a resultType of its own", { content: [], resultType: "task", taskId: "x" }],
    ["a question of its own", { content: [], resultType: "input_required", inputRequests: {} }],
  ] as const)("%s is a tool error that names the tool", async ([, given]) => {
    const result = await answer(given);
    expect(result.isError).toBe(true);
    expect(result.structuredContent).toMatchObject({ code: "internal_error", retryable: false });
    expect(result.content?.[0]?.text).toContain("the tool work");
  });

  test.for([
    [{ content: "done" }, "content: Invalid input: expected array, received string"],
    [{ content: [{ type: "text" }] }, "content.0: "],
    [{ isError: "yes" }, "isError: Invalid input: expected boolean, received string"],
  ] as const)("the author is told where: %j", async ([given, where]) => {
    expect((await answer(given)).structuredContent?.["message"]).toContain(where);
  });

  test("resultType complete may be said, and _meta is kept", async () => {
    const _meta = { "org.example/cost": 3 };
    expect(await answers({ ...text("hi"), resultType: "complete", _meta })).toMatchObject([
      { resultType: "complete" },
      { resultType: "complete", _meta },
    ]);
  });

  test("__proto__ in structured content is a key like any other", async () => {
    const structuredContent = JSON.parse('{"__proto__":{"a":1},"b":2}') as object;
    const result = await answer({ content: [], structuredContent });
    expect(JSON.stringify(result.structuredContent)).toBe('{"__proto__":{"a":1},"b":2}');
  });
});

describe("outputSchema is checked inline and on the final result of a task", () => {
  test("a result that fits is sent as it is", async () => {
    const fits = { content: [], structuredContent: { total: 3 } };
    expect(await answer(fits, { outputSchema })).toEqual({ ...fits, resultType: "complete" });
  });

  test.for([
    ["no structuredContent", text("three"), /structuredContent/],
    ["a wrong one", { content: [], structuredContent: { total: "three" } }, /total/],
  ] as const)("%s is a tool error", async ([, given, words]) => {
    for (const result of await answers(given, { outputSchema })) {
      expect(result.isError).toBe(true);
      expect(result.content?.[0]?.text).toMatch(words);
    }
  });

  test("an error result needs none", async () => {
    const result = await answer({ ...text("no total"), isError: true }, { outputSchema });
    expect(result).toEqual({ ...text("no total"), isError: true, resultType: "complete" });
  });

  test("a handle is not held against it, nor is a thrown error", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("task", { outputSchema, inlineBudgetMs: 0 }, () => {
      throw new Error("no total");
    });
    const http = new HttpDoor(tasks);
    const task = await http.until(await http.startTask("task"), "completed");
    expect(task.result).toMatchObject({ ...text("no total"), isError: true });
  });

  test("complete() is held against it", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("task", { outputSchema }, (_args, task) =>
      task.complete({ content: [], structuredContent: { total: "three" } }),
    );
    const http = new HttpDoor(tasks);
    const result = await http.callTool("task");
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toMatch(/total/);
  });

  test("a schema that throws is a tool error, and one that is async is waited for", async () => {
    const { tasks } = startTasks();
    const fussy = z.object({ total: z.number() }).refine(async ({ total }) => total === 3, "must be three");
    tasks.taskTool("three", { outputSchema: fussy, inlineBudgetMs: 0 }, () => ({
      structuredContent: { total: 3 },
    }));
    tasks.taskTool("four", { outputSchema: fussy, inlineBudgetMs: 0 }, () => ({
      structuredContent: { total: 4 },
    }));
    const http = new HttpDoor(tasks);
    expect((await http.until(await http.startTask("three"), "completed")).result?.isError).toBeUndefined();
    const four = await http.until(await http.startTask("four"), "completed");
    expect(four.result?.content?.[0]?.text).toMatch(/must be three/);
  });
});
