/*
 * Each seam reaches into private parts of its SDK: the oldest supported version and the current one, with everything that depends on
 * them. `sdk-1-29` and `server-2-3` are those packages in their oldest versions.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { MemoryTaskStore } from "@longjobs/core";
import * as currentV1 from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import * as currentV2 from "@modelcontextprotocol/server";
import { serveStdio as serveStdioCurrent } from "@modelcontextprotocol/server/stdio";
import { Server as OldestLowLevel } from "sdk-1-29/server/index.js";
import * as oldestV1 from "sdk-1-29/server/mcp.js";
import * as oldestV2 from "server-2-3";
import { serveStdio as serveStdioOldest } from "server-2-3/stdio";
import { describe, expect, test } from "vitest";
import { z } from "zod";

import { createTasks, type Tasks } from "../src/index.ts";
import { callAsTask } from "./support/client-2025.ts";
import { HttpDoor, errorOf, resultOf } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { askName, echoTool, gatedTool, text } from "./support/tools.ts";
import { openV1Door, type DoorOptions } from "./support/v1-door.ts";
import type { WireResult } from "./support/wire.ts";

const info = { name: "test", version: "1.0.0" };
const ada = { action: "accept", content: { name: "Ada" } } as const;

/** A tool of every kind that a seam treats differently. */
function registerTools(tasks: Tasks): ReturnType<typeof gatedTool> {
  echoTool(tasks);
  tasks.taskTool(
    "greet",
    {
      inlineBudgetMs: 0,
      outputSchema: z.object({ name: z.string() }),
      prepare: (_args, { inputResponses }) =>
        "first" in inputResponses ? {} : { inputRequests: { first: askName } },
    },
    async (_args, task) => {
      const { last } = await task.requestInput({ last: askName });
      return { ...text("Hello"), structuredContent: (last as typeof ada).content };
    },
  );
  tasks.taskTool("refuse", {}, () => {
    throw Object.assign(new Error("Not today"), { code: -32_050, data: { n: 1 } });
  });
  return gatedTool(tasks, "slow");
}

/** What the package says of its own version. */
function versionAt(module: string): string {
  const path = fileURLToPath(import.meta.resolve(module)).replace(/\/dist\/.*$/, "/package.json");
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}

test("the oldest supported versions are tested, beside newer ones", () => {
  const { peerDependencies } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  ) as { peerDependencies: { readonly [name: string]: string } };
  const [v1, v2] = [versionAt("sdk-1-29/server/mcp.js"), versionAt("server-2-3")];
  expect(peerDependencies["@modelcontextprotocol/sdk"]).toBe(`>=${v1} <2`);
  expect(peerDependencies["@modelcontextprotocol/server"]).toBe(`>=${v2} <3`);
  expect(versionAt("@modelcontextprotocol/sdk/server/mcp.js")).not.toBe(v1);
  expect(versionAt("@modelcontextprotocol/server")).not.toBe(v2);
});

test("attach takes a server of each version without a cast", async () => {
  await using tasks = createTasks({ store: new MemoryTaskStore() });
  tasks.attach(new oldestV1.McpServer(info));
  tasks.attach(new OldestLowLevel(info));
  tasks.attach(new oldestV2.McpServer(info));
});

describe.each([
  [
    "the oldest",
    oldestV2 as unknown as typeof currentV2,
    serveStdioOldest as unknown as typeof serveStdioCurrent,
  ],
  ["the current", currentV2, serveStdioCurrent],
])("%s SDK v2", (_name, sdk, serveStdio) => {
  function open(): { readonly http: HttpDoor; readonly slow: ReturnType<typeof gatedTool> } {
    const { tasks } = startTasks();
    const slow = registerTools(tasks);
    return { http: new HttpDoor(tasks, { sdk }), slow };
  }

  test("lists by request: the tools for clients without tasks, and outputSchema for those with", async () => {
    const { http } = open();
    const list = async (declare: boolean) => {
      const { tools } = resultOf(await http.send("tools/list", {}, { declare })) as unknown as {
        readonly tools: readonly { readonly name: string; readonly outputSchema?: object }[];
      };
      return tools.map(({ name, outputSchema }) => (outputSchema === undefined ? name : `${name}*`));
    };
    const three = ["durable_task_get*", "durable_task_respond*", "durable_task_cancel*"];
    expect(await list(true)).toEqual(["echo", "greet*", "refuse", "slow"]);
    expect(await list(false)).toEqual(["echo", ...three, "greet", "refuse", "slow"]);
  });

  test("a result, bad arguments and a protocol error leave the callback as they are", async () => {
    const { http } = open();
    expect((await http.callTool("echo", { words: "hi" })).content).toEqual(text("hi").content);
    expect(await http.callTool("echo", { words: 7 })).toMatchObject({ isError: true });
    const refused = await http.send("tools/call", { name: "refuse", arguments: {} });
    expect(errorOf(refused)).toEqual({ code: -32_050, message: "Not today", data: { n: 1 } });
  });

  test("prepare asks over several rounds, then there is a task, which asks, is answered and completes", async () => {
    const { http } = open();
    const call = { name: "greet", arguments: {} };
    const first = resultOf(await http.send("tools/call", call));
    expect(first).toMatchObject({ resultType: "input_required", inputRequests: { first: askName } });
    const { requestState } = first;
    const again = { ...call, requestState, inputResponses: { first: ada } };
    const { taskId = "", resultType } = resultOf(await http.send("tools/call", again));
    expect(resultType).toBe("task");
    expect((await http.until(taskId, "input_required")).inputRequests).toEqual({ last: askName });
    await http.update(taskId, { last: ada });
    const { result } = await http.until(taskId, "completed");
    expect(result).toMatchObject({ ...text("Hello"), structuredContent: { name: "Ada" } });
  });

  test("a task is cancelled, and only by who declares the extension", async () => {
    const { http } = open();
    const taskId = await http.startTask("slow");
    expect(errorOf(await http.send("tasks/cancel", { taskId }, { declare: false })).code).toBe(-32_021);
    await http.cancel(taskId);
    await http.until(taskId, "cancelled");
  });

  test("changes are told over HTTP, beside the SDK's own, until the task has ended", async () => {
    const { tasks } = startTasks();
    const slow = registerTools(tasks);
    const http = new HttpDoor(tasks, { sdk, push: true });
    const taskId = await http.startTask("slow");
    const alone = await http.listen({ taskIds: [taskId, "nobody"] });
    const beside = await http.listen({ toolsListChanged: true, taskIds: [taskId] });
    for (const stream of [alone, beside]) {
      expect(await stream.acknowledged()).toEqual([taskId]);
      expect(await stream.task()).toMatchObject({ taskId, status: "working" });
    }
    http.handler.notify.toolsChanged();
    expect(await beside.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    slow.gate.open();
    for (const stream of [alone, beside])
      expect((await stream.until("completed"))["result"]).toMatchObject(text("done"));
    await alone.ended();
    await http.handler.close();
    await beside.ended();
  });

  test("changes are told over stdio, until the task has ended", async () => {
    const { tasks } = startTasks();
    const slow = registerTools(tasks);
    const { InMemoryTransport, McpServer } = sdk;
    const door = await StdioDoor.serve(tasks, {
      push: true,
      sdk: { InMemoryTransport, McpServer, serveStdio },
    });
    const { result } = await door.send("tools/call", { name: "slow", arguments: {} });
    await door.listen({ taskIds: [result?.taskId, "nobody"] });
    await expect.poll(() => door.subscribed.length).toBe(2);
    slow.gate.open();
    await expect.poll(() => door.subscribed.length).toBe(4);
    expect(door.subscribed[0]?.params?.["notifications"]).toEqual({ taskIds: [result?.taskId] });
    expect(door.subscribed[2]?.params?.["result"]).toMatchObject(text("done"));
    expect(door.subscribed[3]?.result).toMatchObject({ resultType: "complete" });
  });

  test("clients of 2025-11-25 have their tasks and the tools", async () => {
    const { http, slow } = open();
    const send = async (method: string, params: object) => resultOf(await http.sendLegacy(method, params));
    const { task } = (await send("tools/call", { name: "slow", arguments: {}, task: {} })) as WireResult & {
      readonly task: { readonly taskId: string };
    };
    const args = { name: "durable_task_get", arguments: { taskId: task.taskId } };
    expect((await send("tools/call", args)).structuredContent).toMatchObject({ status: "working" });
    const waiting = send("tasks/result", { taskId: task.taskId });
    slow.gate.open();
    expect((await waiting).content).toEqual(text("done").content);
    expect(await send("tasks/get", { taskId: task.taskId })).toMatchObject({ status: "completed" });
  });
});

describe.each([
  ["the oldest", oldestV1 as unknown as typeof currentV1],
  ["the current", currentV1],
])("%s SDK v1", (_name, sdk) => {
  async function open(answer: NonNullable<DoorOptions["answer"]> = () => ada) {
    const { tasks } = startTasks();
    const slow = registerTools(tasks);
    const server = () => {
      const mcp = new sdk.McpServer(info);
      mcp.registerTool("theirs", {}, async () => ({ content: [{ type: "text", text: "theirs" }] }));
      return tasks.attach(mcp);
    };
    const { client } = await openV1Door(tasks, { server, answer });
    return { client, slow };
  }

  test("lists and calls our tools and the server's own", async () => {
    const { client } = await open();
    const { tools } = await client.listTools();
    const three = ["durable_task_get", "durable_task_respond", "durable_task_cancel"];
    expect(tools.map(({ name }) => name)).toEqual(["theirs", "echo", ...three, "greet", "refuse", "slow"]);
    expect(tools.at(-1)).toMatchObject({ execution: { taskSupport: "optional" } });
    expect(await client.callTool({ name: "theirs" })).toMatchObject(text("theirs"));
    expect(await client.callTool({ name: "echo", arguments: { words: "hi" } })).toEqual(text("hi"));
    expect(await client.callTool({ name: "echo", arguments: { words: 7 } })).toMatchObject({ isError: true });
    await expect(client.callTool({ name: "refuse" })).rejects.toMatchObject({
      code: -32_050,
      data: { n: 1 },
    });
  });

  test("prepare asks the client, and so does the task while its result is awaited", async () => {
    let asked = 0;
    const { client } = await open(() => {
      asked += 1;
      return ada;
    });
    const { taskId } = await callAsTask(client, "greet");
    expect(asked).toBe(1);
    const result = await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
    expect(result).toMatchObject({ ...text("Hello"), structuredContent: { name: "Ada" } });
    expect(asked).toBe(2);
  });

  test("a task is cancelled; a job is followed by the tools", async () => {
    const { client, slow } = await open();
    const { taskId } = await callAsTask(client, "slow");
    expect(await client.experimental.tasks.cancelTask(taskId)).toMatchObject({ status: "cancelled" });
    const started = await client.callTool({ name: "slow" });
    const { taskId: job } = started.structuredContent as { readonly taskId: string };
    const waiting = client.callTool({
      name: "durable_task_get",
      arguments: { taskId: job, waitSeconds: 25 },
    });
    slow.gate.open();
    expect(await waiting).toMatchObject(text("done"));
  });
});
