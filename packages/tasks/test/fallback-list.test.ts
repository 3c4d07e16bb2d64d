import { McpServer } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";
import { z } from "zod";

import { createTasks, type Tasks, type TasksOptions } from "../src/index.ts";
import { MemoryTaskStore } from "@longjobs/core";
import { entries, idOf, openEntry, type Entry } from "./support/entries.ts";
import { HttpDoor, resultOf } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { echoTool, gatedTool, text } from "./support/tools.ts";
import type { WireResult } from "./support/wire.ts";

interface Listed {
  readonly name: string;
  readonly description?: string;
  readonly outputSchema?: object;
  readonly inputSchema: { readonly properties?: object; readonly required?: readonly string[] };
  readonly annotations?: object;
}

async function listOf(client: Entry): Promise<WireResult & { readonly tools: readonly Listed[] }> {
  const { result } = await client.send("tools/list");
  return result as WireResult & { tools: Listed[] };
}

function namesOf({ tools }: { readonly tools: readonly Listed[] }): string[] {
  return tools.map(({ name }) => name);
}

const three = ["durable_task_get", "durable_task_respond", "durable_task_cancel"];

/** A tool with an `outputSchema` for each fallback. */
function bothFallbacks(tasks: Tasks): void {
  for (const fallback of ["tools", "wait"] as const) {
    tasks.taskTool(fallback, { fallback, outputSchema: z.object({ sum: z.number() }) }, () => ({
      structuredContent: { sum: 3 },
    }));
  }
}

describe("the list is made for each request", () => {
  test.for(entries)("%s: the three tools are there", async ([, open]) => {
    const { tasks } = startTasks();
    echoTool(tasks);
    expect(namesOf(await listOf(await open(tasks)))).toEqual(["echo", ...three]);
  });

  test("a request that declares the extension does not see them, and they answer it all the same", async () => {
    const { tasks } = startTasks();
    gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    const declared = resultOf(await http.send("tools/list")) as unknown as { tools: Listed[] };
    expect(namesOf(declared)).toEqual(["work"]);
    const undeclared = resultOf(await http.send("tools/list", {}, { declare: false })) as unknown as {
      tools: Listed[];
    };
    expect(namesOf(undeclared)).toEqual(["work", ...three]);
    const taskId = await http.startTask("work");
    const result = await http.callTool("durable_task_get", { taskId });
    expect(result.structuredContent).toMatchObject({ taskId, status: "working" });
    expect((await http.callTool("durable_task_cancel", { taskId })).isError).toBeUndefined();
    await http.until(taskId, "cancelled");
  });

  test("the same over stdio, where one connection serves both", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const door = await StdioDoor.serve(tasks);
    const list = async (declare: boolean): Promise<string[]> =>
      namesOf((await door.send("tools/list", {}, { declare })).result as unknown as { tools: Listed[] });
    expect(await list(true)).toEqual(["echo"]);
    expect(await list(false)).toEqual(["echo", ...three]);
    expect(await list(true)).toEqual(["echo"]);
  });

  test("an answer that depends on who asks may not be cached for others", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const http = new HttpDoor(tasks, {
      serverOptions: { cacheHints: { "tools/list": { ttlMs: 60_000, cacheScope: "public" } } },
    });
    for (const declare of [true, false]) {
      expect(resultOf(await http.send("tools/list", {}, { declare }))).toMatchObject({
        ttlMs: 0,
        cacheScope: "private",
      });
    }
  });

  test.for(entries)("%s: an outputSchema is hidden where a handle may come instead", async ([, open]) => {
    const { tasks } = startTasks();
    bothFallbacks(tasks);
    const { tools } = await listOf(await open(tasks));
    const shown = tools.filter(({ outputSchema }) => outputSchema !== undefined).map(({ name }) => name);
    expect(shown).toEqual([...three, "wait"]);
  });

  test("a request that declares the extension sees every outputSchema: its results are checked against them", async () => {
    const { tasks } = startTasks();
    bothFallbacks(tasks);
    const { tools } = resultOf(await new HttpDoor(tasks).send("tools/list")) as unknown as {
      tools: Listed[];
    };
    expect(tools.every(({ outputSchema }) => outputSchema !== undefined)).toBe(true);
  });

  test("the hidden outputSchema is checked all the same, inline and later", async () => {
    const { tasks } = startTasks();
    const wrong = { content: [], structuredContent: { sum: "three" } };
    const config = { outputSchema: z.object({ sum: z.number() }) };
    tasks.taskTool("inline", config, () => wrong);
    tasks.taskTool("later", { ...config, inlineBudgetMs: 0 }, () => wrong);
    const client = await openEntry(tasks);
    expect(await client.call("inline")).toMatchObject({ isError: true });
    const taskId = idOf(await client.call("later"));
    const later = await client.call("durable_task_get", { taskId, waitSeconds: 5 });
    expect(later).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("sum") }] });
  });
});

describe("the tools are there when a client could need them", () => {
  const noNeed: readonly (readonly [string, (tasks: Tasks) => void, readonly string[]])[] = [
    ["no tool of ours", () => undefined, []],
    ["every tool waits", (tasks) => echoTool(tasks, "echo", { fallback: "wait" }), ["echo"]],
    [
      "every tool is for clients with tasks",
      (tasks) => void gatedTool(tasks, "work", { taskSupport: "required" }),
      ["work"],
    ],
  ];
  test.for(noNeed)("not when %s", async ([, register, names]) => {
    const { tasks } = startTasks();
    register(tasks);
    const http = new HttpDoor(tasks);
    expect(namesOf(resultOf(await http.send("tools/list", {}, { declare: false })) as never)).toEqual(names);
  });

  test("they come with the first tool that needs them, also on a server that is connected", async () => {
    const { tasks } = startTasks();
    echoTool(tasks, "patient", { fallback: "wait" });
    const door = await StdioDoor.serve(tasks);
    await door.initialize();
    const list = async (): Promise<string[]> =>
      namesOf((await door.send("tools/list")).result as unknown as { tools: Listed[] });
    expect(await list()).toEqual(["patient"]);
    echoTool(tasks, "first");
    echoTool(tasks, "second");
    expect(await list()).toEqual(["patient", "first", ...three, "second"]);
  });

  test("they are tools without effects of their own, but for the one that stops work", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const { tools } = await listOf(await openEntry(tasks));
    const hints = tools.filter(({ name }) => name !== "echo").map(({ annotations }) => annotations);
    expect(hints).toEqual([
      { readOnlyHint: true, idempotentHint: true, destructiveHint: false },
      { readOnlyHint: false, idempotentHint: true, destructiveHint: false },
      { readOnlyHint: false, idempotentHint: true, destructiveHint: true },
    ]);
    for (const { inputSchema } of tools) expect(inputSchema).toHaveProperty("type", "object");
    expect(tools[1]?.inputSchema).toMatchObject({
      properties: { taskId: { type: "string" }, waitSeconds: { type: "number" } },
      required: ["taskId"],
    });
  });

  test("text budget: the three descriptions together are under 1,200 characters", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const { tools } = await listOf(await openEntry(tasks));
    const descriptions = tools
      .filter(({ name }) => name !== "echo")
      .map(({ description }) => description ?? "");
    expect(descriptions.every((description) => description.length > 50)).toBe(true);
    expect(descriptions.join("").length).toBeLessThan(1_200);
  });
});

describe("names and texts are the author's to choose", () => {
  test("a prefix of its own is in the names, the descriptions and every instruction", async () => {
    const { tasks } = startTasks({
      fallbackTools: { prefix: "report", maxWaitSeconds: 7, descriptions: { cancel: "Stops it." } },
    });
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const { tools } = await listOf(client);
    expect(namesOf({ tools })).toEqual(["work", "report_get", "report_respond", "report_cancel"]);
    expect(tools.at(-1)?.description).toBe("Stops it.");
    expect(tools[1]?.description).toContain("at most 7");
    const started = await client.call("work");
    const taskId = idOf(started);
    const replies = [started, await client.call("report_get", { taskId })];
    expect(JSON.stringify([tools, replies])).not.toContain("durable_task");
    for (const { content } of replies)
      expect(content?.[0]?.text).toContain(`report_get with {"taskId":"${taskId}","waitSeconds":7}`);
    tool.gate.open();
  });

  test.for([
    ["a prefix with a blank", { prefix: "my tasks" }, TypeError],
    ["a prefix of nothing", { prefix: "" }, TypeError],
    ["a prefix of 41 characters", { prefix: "p".repeat(41) }, TypeError],
    ["a prefix that is no text", { prefix: 7 }, TypeError],
    ["a wait that is text", { maxWaitSeconds: "25" }, TypeError],
    ["a wait that is no number", { maxWaitSeconds: Number.NaN }, RangeError],
    ["a wait below a second", { maxWaitSeconds: 0.5 }, RangeError],
    ["a wait of more than an hour", { maxWaitSeconds: 3_601 }, RangeError],
    ["a description that is no text", { descriptions: { get: 7 } }, TypeError],
    ["a description of nothing", { descriptions: { respond: "" } }, TypeError],
    ["descriptions that are text", { descriptions: "Gets." }, TypeError],
    ["text in place of options", "durable_task", TypeError],
    ["null", null, TypeError],
  ] as const)("%s is refused at the call", ([, fallbackTools, kind]) => {
    const given = { store: new MemoryTaskStore(), fallbackTools } as unknown as TasksOptions;
    expect(() => createTasks(given)).toThrow(kind);
    expect(() => createTasks(given)).toThrow(/fallbackTools/);
  });

  test("options that are undefined are options that are not there", async () => {
    const { tasks } = startTasks({
      fallbackTools: { prefix: undefined, descriptions: { get: undefined } },
    });
    echoTool(tasks);
    const { tools } = await listOf(await openEntry(tasks));
    expect(tools[1]).toMatchObject({
      name: "durable_task_get",
      description: expect.stringContaining("Gets"),
    });
  });

  test("a task tool may not take their names, and a tool of the server's own that did is told of", () => {
    const { tasks } = startTasks();
    expect(() => tasks.taskTool("durable_task_get", {}, () => text("mine"))).toThrow(/fallbackTools/);
    echoTool(tasks);
    const mcp = new McpServer({ name: "test", version: "1.0.0" });
    mcp.registerTool("durable_task_cancel", {}, () => ({ content: [] }));
    expect(() => tasks.attach(mcp)).toThrow(/durable_task_cancel[^]*fallbackTools/);
  });
});
