import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";

import { startTasks } from "../support/started-tasks.ts";
import { askName, echoTool, gatedTool, greeter, text } from "../support/tools.ts";
import { closeLater, connectV1Client, openV1Door, type DoorOptions, type Road } from "../support/v1-door.ts";

const roads: readonly Road[] = ["memory", "http", "stateless", "json"];
const fallbackTools = ["durable_task_get", "durable_task_respond", "durable_task_cancel"];

type Structured = { readonly structuredContent: { readonly [name: string]: unknown } };

async function structured(
  client: Client,
  name: string,
  args: object = {},
): Promise<Structured["structuredContent"]> {
  const result = await client.callTool({ name, arguments: { ...args } });
  return (result as Structured).structuredContent;
}

describe.each(roads)("over %s", (road) => {
  test.each([false, true])("tools are listed and called, low-level server: %s", async (lowLevel) => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const { client } = await openV1Door(tasks, { road, lowLevel });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["echo", ...fallbackTools]);
    expect(tools[0]).toMatchObject({
      inputSchema: { type: "object", properties: { words: { type: "string" } }, required: ["words"] },
      execution: { taskSupport: "optional" },
    });
    expect(await client.callTool({ name: "echo", arguments: { words: "hi" } })).toEqual(text("hi"));
  });

  test("a job outlives its call and is followed by the tools for clients without tasks", async () => {
    const { tasks } = startTasks();
    const slow = gatedTool(tasks, "slow");
    const { client } = await openV1Door(tasks, { road });
    const { taskId } = await structured(client, "slow");
    expect(await structured(client, "durable_task_get", { taskId })).toMatchObject({ status: "working" });
    slow.gate.open();
    const done = await client.callTool({ name: "durable_task_get", arguments: { taskId, waitSeconds: 5 } });
    expect(done).toMatchObject({ ...text("done"), structuredContent: { status: "completed" } });
  });

  test("a question is answered by a model, in another session", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const { client } = await openV1Door(tasks, { road });
    const { taskId } = await structured(client, "greet");
    const { client: other } = await openV1Door(tasks, { road });
    await structured(other, "durable_task_get", { taskId, waitSeconds: 5 });
    await structured(other, "durable_task_respond", { taskId, response: "Ada" });
    const done = await other.callTool({ name: "durable_task_get", arguments: { taskId, waitSeconds: 5 } });
    expect(JSON.stringify(done.content)).toContain("Ada");
  });

  test("a job is cancelled by the model", async () => {
    const { tasks } = startTasks();
    gatedTool(tasks, "slow");
    const { client } = await openV1Door(tasks, { road });
    const { taskId } = await structured(client, "slow");
    await structured(client, "durable_task_cancel", { taskId });
    await vi.waitFor(async () =>
      expect(await structured(client, "durable_task_get", { taskId })).toMatchObject({ status: "cancelled" }),
    );
  });

  test("an unknown task is a repairable error", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const { client } = await openV1Door(tasks, { road });
    const result = await client.callTool({ name: "durable_task_get", arguments: { taskId: "none" } });
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: "unknown_task" } } });
  });
});

describe("as the SDK's own tools are served", () => {
  test("bad arguments are told in the same words", async () => {
    const { tasks } = startTasks();
    const inputSchema = { n: z.number() };
    tasks.taskTool("ours", { inputSchema }, () => text("done"));
    const extend = (mcp: McpServer): void =>
      void mcp.registerTool("theirs", { inputSchema }, async () => ({ content: [] }));
    const { client } = await openV1Door(tasks, { extend });
    const [ours, theirs] = await Promise.all(
      ["ours", "theirs"].map((name) => client.callTool({ name, arguments: { n: "x" } })),
    );
    expect(ours).toMatchObject({ isError: true });
    expect(JSON.stringify(ours)).toContain("Input validation error: Invalid arguments for tool ours");
    expect(JSON.stringify(theirs)).toContain("Input validation error: Invalid arguments for tool theirs");
  });

  test("their tools stay theirs, before and after attach, and on a low-level server", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const extend = (mcp: McpServer): void =>
      void mcp.registerTool("theirs", {}, async () => ({ content: [{ type: "text", text: "theirs" }] }));
    const { client } = await openV1Door(tasks, { extend });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      "theirs",
      "echo",
      ...fallbackTools,
    ]);
    expect(await client.callTool({ name: "theirs" })).toMatchObject({ content: [{ text: "theirs" }] });
    expect(await client.callTool({ name: "none" })).toMatchObject({ isError: true });
  });

  test("a tool that is registered while a client is connected is announced", async () => {
    const { tasks } = startTasks();
    const { client, received } = await openV1Door(tasks);
    expect((await client.listTools()).tools).toEqual([]);
    echoTool(tasks);
    await vi.waitFor(() =>
      expect(received.map(({ method }) => method)).toContain("notifications/tools/list_changed"),
    );
    expect(await client.callTool({ name: "echo", arguments: { words: "new" } })).toEqual(text("new"));
  });

  test("a handler's protocol error is a JSON-RPC error, and a fault of the server says nothing", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("refuse", {}, () => {
      throw Object.assign(new Error("not today"), { code: -32050, data: { a: 1 } });
    });
    const { client } = await openV1Door(tasks);
    await expect(client.callTool({ name: "refuse" })).rejects.toMatchObject({
      code: -32050,
      message: expect.stringContaining("not today") as string,
      data: { a: 1 },
    });
    await expect(client.callTool({ name: 7 as unknown as string })).rejects.toMatchObject({ code: -32602 });
  });

  test("a tool that requires a task is -32601 for a plain call", async () => {
    const { tasks } = startTasks();
    gatedTool(tasks, "must", { taskSupport: "required" });
    const { client } = await openV1Door(tasks);
    await expect(client.callTool({ name: "must" })).rejects.toMatchObject({ code: -32601 });
  });

  test("with fallback wait the result comes with progress, and its outputSchema is listed", async () => {
    const { tasks } = startTasks();
    const outputSchema = z.object({ total: z.number() });
    tasks.taskTool("count", { fallback: "wait", outputSchema }, async (_args, task) => {
      await task.progress({ done: 1, total: 2 });
      return { content: [], structuredContent: { total: 2 } };
    });
    const { client } = await openV1Door(tasks, { road: "http" });
    expect((await client.listTools()).tools[0]?.outputSchema).toMatchObject({ type: "object" });
    const progress: unknown[] = [];
    const result = await client.callTool({ name: "count" }, undefined, {
      onprogress: (each) => progress.push(each),
    });
    expect(result.structuredContent).toEqual({ total: 2 });
    expect(progress).toEqual([{ progress: 1, total: 2 }]);
  });

  test("a client that cancels its call ends work that has no handle yet", async () => {
    const { tasks } = startTasks();
    const slow = gatedTool(tasks, "slow", { inlineBudgetMs: 60_000 });
    const { client } = await openV1Door(tasks, { road: "http" });
    const controller = new AbortController();
    const calling = client.callTool({ name: "slow" }, undefined, { signal: controller.signal });
    await vi.waitFor(() => expect(slow.runs).toHaveLength(1));
    controller.abort("enough");
    await expect(calling).rejects.toThrow(/enough/);
    await vi.waitFor(() => expect(slow.runs[0]?.signal.aborted).toBe(true));
  });
});

describe("prepare asks before there is a task", () => {
  function prepared(): ReturnType<typeof startTasks> {
    const started = startTasks();
    started.tasks.taskTool(
      "hello",
      {
        prepare: (_args, { inputResponses }) =>
          "who" in inputResponses ? {} : { inputRequests: { who: askName } },
      },
      () => text("hello"),
    );
    return started;
  }
  const ada: DoorOptions["answer"] = () => ({ action: "accept", content: { name: "Ada" } });

  test.each(["memory", "http"] as const)("of a client that can be asked, over %s", async (road) => {
    const { client, received } = await openV1Door(prepared().tasks, { road, answer: ada });
    expect(await client.callTool({ name: "hello" })).toEqual(text("hello"));
    expect(received.filter(({ method }) => method === "elicitation/create")).toHaveLength(1);
  });

  test("again when the answer does not fit, with the reason", async () => {
    const asked: string[] = [];
    const answer: DoorOptions["answer"] = (message) => {
      asked.push(message);
      return { action: "accept", content: { name: asked.length === 1 ? 7 : "Ada" } };
    };
    const { client } = await openV1Door(prepared().tasks, { answer });
    expect(await client.callTool({ name: "hello" })).toEqual(text("hello"));
    expect(asked).toHaveLength(2);
  });

  test.each<[Road, DoorOptions["answer"]]>([
    ["memory", undefined],
    ["stateless", ada],
    ["json", ada],
  ])("over %s, where it cannot be asked, it gets a repairable error", async (road, answer) => {
    const { client } = await openV1Door(prepared().tasks, {
      road,
      ...(answer === undefined ? {} : { answer }),
    });
    expect(await client.callTool({ name: "hello" })).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "input_not_supported" } },
    });
  });
});

describe("whose task it is", () => {
  test("two users behind bearer tokens: a foreign task looks unknown", async () => {
    const { tasks } = startTasks({ scope: undefined as never });
    gatedTool(tasks, "slow");
    const as = (sub: string): DoorOptions => ({
      road: "http",
      auth: () => ({ token: "t", clientId: "host", scopes: [], extra: { iss: "https://id.example", sub } }),
    });
    const { client: ada } = await openV1Door(tasks, as("ada"));
    const { client: bob } = await openV1Door(tasks, as("bob"));
    const { taskId } = await structured(ada, "slow");
    expect(await structured(ada, "durable_task_get", { taskId })).toMatchObject({ status: "working" });
    expect(await structured(bob, "durable_task_get", { taskId })).toMatchObject({
      error: { code: "unknown_task" },
    });
  });
});

test("a real process over stdio", async () => {
  const script = fileURLToPath(new URL("../support/v1-stdio-server/child.ts", import.meta.url));
  const transport = new StdioClientTransport({ command: process.execPath, args: [script] });
  const { client } = await connectV1Client(transport, {
    answer: () => ({ action: "accept", content: { answer: "Ada" } }),
  });
  closeLater(() => transport.close());
  expect(await client.callTool({ name: "add", arguments: { a: 1, b: 2 } })).toEqual(text("3 for undefined"));
  const { taskId } = await structured(client, "greet");
  await structured(client, "durable_task_respond", { taskId, response: "Ada" });
  const done = await client.callTool({ name: "durable_task_get", arguments: { taskId, waitSeconds: 5 } });
  expect(done.content).toEqual(text("Hello, Ada").content);
  const stream = client.experimental.tasks.callToolStream({ name: "greet" }, undefined, { task: {} });
  let last: unknown;
  for await (const message of stream) last = message;
  expect(last).toMatchObject({ type: "result", result: text("Hello, Ada") });
});
