import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { McpServer } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";

import { modernFrame } from "./support/frames.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { askName, gatedTool, greeter, text } from "./support/tools.ts";
import type { WireMessage } from "./support/wire.ts";

const child = fileURLToPath(new URL("support/stdio-server/child.ts", import.meta.url));

/** Starts a real process and talks to it over its standard streams. */
function startChild() {
  const server = spawn(process.execPath, [child], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise<number | null>((resolve) => {
    server.once("exit", resolve);
  });
  const door = new StdioDoor((onMessage) => {
    createInterface({ input: server.stdout }).on("line", (line) =>
      onMessage(JSON.parse(line) as WireMessage),
    );
    return {
      send: async (frame) => void server.stdin.write(`${JSON.stringify(frame)}\n`),
      close: async () => {
        server.stdin.end();
        await ended;
      },
    };
  });
  return { door, ended, server };
}

async function untilStatus(door: StdioDoor, taskId: unknown, status: string) {
  await expect.poll(async () => (await door.send("tasks/get", { taskId })).result?.status).toBe(status);
  return (await door.send("tasks/get", { taskId })).result;
}

describe("a real process over stdio", () => {
  test("answers inline, as a task, and ends when its input ends", async () => {
    const { door, ended, server } = startChild();
    const added = await door.send("tools/call", { name: "add", arguments: { a: 1, b: 2 } });
    expect(added.result?.content, "one user, so no scope and no auth info").toEqual(
      text("3 for undefined").content,
    );
    const { result } = await door.send("tools/call", { name: "greet" });
    expect(result?.resultType).toBe("task");
    await untilStatus(door, result?.taskId, "input_required");
    const inputResponses = { who: { action: "accept", content: { name: "Ada" } } };
    await door.send("tasks/update", { taskId: result?.taskId, inputResponses });
    const done = await untilStatus(door, result?.taskId, "completed");
    expect(done?.result?.content?.[0]?.text).toContain("Ada");
    server.stdin.end();
    expect(await ended).toBe(0);
  });

  test("lives through what is no JSON and no request", async () => {
    const { door, server } = startChild();
    server.stdin.write('{x\n\n7\n{"jsonrpc":"2.0"}\n');
    const added = await door.send("tools/call", { name: "add", arguments: { a: 2, b: 2 } });
    expect(added.result?.content?.[0]?.text).toContain("4");
  });
});

describe("a client of 2025-11-25 over stdio", () => {
  test("sees the tools, waits for their results, and has no tasks/update", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" });
    const door = await StdioDoor.serve(tasks);
    await door.initialize();
    const listed = (await door.send("tools/list")).result as { tools?: { name: string }[] };
    expect(listed.tools?.map(({ name }) => name)).toEqual(["work"]);
    const answer = door.send("tools/call", { name: "work", arguments: {} });
    await expect.poll(() => tool.runs.length).toBe(1);
    tool.gate.open();
    expect((await answer).result).toEqual(text("done"));
    const { error } = await door.send("tasks/update", { taskId: "t", inputResponses: {} });
    expect(error?.code).toBe(-32_601);
  });

  test("is asked by prepare through the SDK's own elicitation", async () => {
    const { tasks } = startTasks();
    tasks.taskTool(
      "greet",
      {
        prepare: (_args, { inputResponses }) =>
          inputResponses["who"] === undefined ? { inputRequests: { who: askName } } : {},
      },
      () => text("hello"),
    );
    const door = await StdioDoor.serve(tasks);
    await door.initialize({ elicitation: { form: {} } });
    const answer = door.send("tools/call", { name: "greet", arguments: {} });
    await expect.poll(() => door.asked.length).toBe(1);
    expect(door.asked[0]).toMatchObject({ method: "elicitation/create", params: { message: "Your name?" } });
    await door.answer(door.asked[0]?.id, { action: "accept", content: { name: "Ada" } });
    expect((await answer).result).toEqual(text("hello"));
  });

  test("gets an error it can read from a handler that asks in the middle of its work", async () => {
    const { tasks } = startTasks();
    greeter(tasks, "greet", { fallback: "wait" });
    const door = await StdioDoor.serve(tasks);
    await door.initialize({ elicitation: { form: {} } });
    const { result } = await door.send("tools/call", { name: "greet", arguments: {} });
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "input_not_supported" } });
  });
});

test("a server connected by hand is one of 2025-11-25, whatever its frames claim", async () => {
  const { tasks, store } = startTasks();
  gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" }).gate.open();
  const mcp = new McpServer({ name: "test", version: "1.0.0" });
  tasks.attach(mcp);
  const door = await StdioDoor.connect(mcp);
  await door.initialize();
  const claim = modernFrame("tools/call", { name: "work", arguments: {} }).params;
  const { result } = await door.send("tools/call", claim);
  expect(result).toEqual(text("done"));
  const { error } = await door.send("tasks/update", { ...claim, taskId: "t", inputResponses: {} });
  expect(error?.code).toBe(-32_601);
  expect(store.calls).toEqual([]);
});

test("the neutral request says what a call came over", async () => {
  const seen: string[] = [];
  const { tasks } = startTasks({
    scope: ({ transport }) => {
      seen.push(transport);
      return "me";
    },
  });
  gatedTool(tasks, "work").gate.open();
  const mcp = new McpServer({ name: "test", version: "1.0.0" });
  tasks.attach(mcp);
  const memory = await StdioDoor.connect(mcp);
  await memory.initialize();
  await memory.send("tools/call", { name: "work", arguments: {} });
  const stdio = await StdioDoor.serve(tasks);
  await stdio.send("tools/call", { name: "work" });
  expect(seen).toEqual(["memory", "stdio"]);
});
