import {
  CallToolResultSchema,
  CreateTaskResultSchema,
  ListTasksResultSchema,
  type CreateTaskResult,
} from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";

import { callAsTask, callStream, never, taskMethods } from "../support/client-2025.ts";
import { keyMeta } from "../support/keyed-clients.ts";
import { startTasks } from "../support/started-tasks.ts";
import { echoTool, gatedTool, greeter, text } from "../support/tools.ts";
import { gate } from "../support/turns.ts";
import { allRoads, openRoads, openV1Door, type DoorOptions } from "../support/v1-door.ts";
import { immediateResponse, relatedTask } from "../support/wire-2025.ts";

const support = { echo: "optional", must: "required" };

describe.each(allRoads)("over %s", (road) => {
  test("a call with task is a task at once, and its result is what the call would have given", async () => {
    const { tasks } = startTasks();
    const slow = gatedTool(tasks, "slow", { inlineBudgetMs: 60_000 });
    const { client } = await openV1Door(tasks, { road });
    const task = await callAsTask(client, "slow");
    expect(task).toMatchObject({ status: "working", pollInterval: 10 });
    const result = client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema);
    expect(await client.experimental.tasks.getTask(task.taskId)).toMatchObject({ status: "working" });
    slow.gate.open();
    expect(await result).toEqual({ ...text("done"), _meta: { [relatedTask]: { taskId: task.taskId } } });
    expect(await client.experimental.tasks.getTask(task.taskId)).toMatchObject({ status: "completed" });
  });

  test("the host is given words for its model, which can follow the task by them", async () => {
    const { tasks } = startTasks();
    const slow = gatedTool(tasks, "slow");
    gatedTool(tasks, "patient", { fallback: "wait" });
    const { client } = await openV1Door(tasks, { road });
    const call = async (name: string): Promise<CreateTaskResult> =>
      client.request({ method: "tools/call", params: { name, task: {} } }, CreateTaskResultSchema);
    const { task, _meta } = await call("slow");
    const words = String(_meta?.[immediateResponse]);
    expect(words).toContain(task.taskId);
    expect(words).toContain("NOT finished");
    expect(words.length).toBeLessThan(400);
    const [, name = "", args = "{}"] = /Call (\w+) with (\{.*?\})/.exec(words) ?? [];
    slow.gate.open();
    const followed = await client.callTool({ name, arguments: JSON.parse(args) as Record<string, unknown> });
    expect(followed).toMatchObject(text("done"));
    const other = await call("patient");
    expect(String(other._meta?.[immediateResponse])).toContain("NOT finished");
    expect(String(other._meta?.[immediateResponse]), "no tool to follow it by").not.toContain("Call ");
  });

  test("a call that is repeated with its idempotency key is given no words: the task may have ended", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", {}, () => text("done"));
    const { client } = await openV1Door(tasks, { road });
    const params = { name: "work", task: {}, _meta: { [keyMeta]: "k1" } };
    const call = () => client.request({ method: "tools/call", params }, CreateTaskResultSchema);
    const first = await call();
    expect(first._meta).toHaveProperty([immediateResponse]);
    await client.experimental.tasks.getTaskResult(first.task.taskId, CallToolResultSchema);
    const again = await call();
    expect(again.task).toMatchObject({ taskId: first.task.taskId, status: "completed" });
    expect(again._meta ?? {}).toEqual({});
  });

  test("callToolStream goes from the task to its result", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    tasks.taskTool("quick", {}, () => text("quick"));
    const { client } = await openV1Door(tasks, { road });
    const messages = await callStream(client, "quick");
    expect(messages.at(0)).toMatchObject({ type: "taskCreated", task: { status: "working" } });
    expect(messages.at(-1)).toMatchObject({ type: "result", result: text("quick") });
  });

  test("the list says what can be a task, and a tool that must be one works as one", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    tasks.taskTool("must", { taskSupport: "required" }, () => text("as a task"));
    const { client } = await openV1Door(tasks, { road });
    const { tools } = await client.listTools();
    expect(tools.flatMap(({ name, execution }) => (name in support ? [[name, execution]] : []))).toEqual(
      expect.arrayContaining(Object.entries(support).map(([name, taskSupport]) => [name, { taskSupport }])),
    );
    expect((await callStream(client, "must", undefined)).at(-1)).toMatchObject({ result: text("as a task") });
    await expect(
      client.request({ method: "tools/call", params: { name: "must" } }, CallToolResultSchema),
    ).rejects.toMatchObject({ code: -32601 });
    await expect(callAsTask(client, "durable_task_get")).rejects.toMatchObject({ code: -32601 });
  });

  test("bad arguments are an error, and make no task", async () => {
    const { tasks, store } = startTasks();
    echoTool(tasks);
    const { client } = await openV1Door(tasks, { road });
    await expect(callAsTask(client, "echo", { words: 7 })).rejects.toMatchObject({ code: -32602 });
    await expect(callAsTask(client, "echo", { words: "x" }, { ttl: -1 })).rejects.toMatchObject({
      code: -32602,
    });
    expect(store.calls.filter(({ method }) => method === "create")).toEqual([]);
  });

  test("a cancel stands when it is answered, and a late result is dropped", async () => {
    const { tasks } = startTasks();
    const late = gate();
    tasks.taskTool("stubborn", {}, async () => {
      await late.opened;
      return text("too late");
    });
    const { client } = await openV1Door(tasks, { road });
    const { taskId } = await callAsTask(client, "stubborn");
    expect(await client.experimental.tasks.cancelTask(taskId)).toMatchObject({ status: "cancelled" });
    late.open();
    await vi.waitFor(() => expect(tasks.stats().attempts).toBe(0));
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: "cancelled" });
    await expect(client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).rejects.toMatchObject(
      { code: -32603 },
    );
    await expect(client.experimental.tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 });
  });

  test("unknown ids are -32602, and there is no tasks/list", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const { client } = await openV1Door(tasks, { road });
    for (const call of taskMethods(client)) await expect(call(never)).rejects.toMatchObject({ code: -32602 });
    await expect(
      client.request({ method: "tasks/get", params: {} as never }, z.looseObject({})),
    ).rejects.toMatchObject({
      code: -32602,
    });
    await expect(client.request({ method: "tasks/list" }, ListTasksResultSchema)).rejects.toMatchObject({
      code: -32601,
    });
    expect(client.getServerCapabilities()?.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } });
  });
});

describe("how work ends", () => {
  test("a tool error is failed, says why, and its result is the tool's", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("bad", {}, () => ({ ...text("bad luck"), isError: true }));
    const { client } = await openV1Door(tasks);
    const { taskId } = await callAsTask(client, "bad");
    const result = await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
    expect(result).toMatchObject({ ...text("bad luck"), isError: true });
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({
      status: "failed",
      statusMessage: "bad luck",
    });
    await expect(client.experimental.tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 });
  });

  test("a protocol error is the same error from tasks/result", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("refuse", {}, () => {
      throw Object.assign(new Error("not today"), { code: -32050, data: { a: 1 } });
    });
    const { client } = await openV1Door(tasks);
    const { taskId } = await callAsTask(client, "refuse");
    await expect(client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).rejects.toMatchObject(
      {
        code: -32050,
        data: { a: 1 },
      },
    );
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({
      status: "failed",
      statusMessage: "not today",
    });
  });

  test("a client that gives up waiting leaves the task alone", async () => {
    const { tasks } = startTasks();
    const slow = gatedTool(tasks, "slow");
    const { client } = await openV1Door(tasks);
    const { taskId } = await callAsTask(client, "slow");
    const controller = new AbortController();
    const waiting = client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, {
      signal: controller.signal,
    });
    controller.abort();
    await expect(waiting).rejects.toThrow();
    slow.gate.open();
    expect(await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject(
      text("done"),
    );
  });
});

describe("what may be a task", () => {
  test("a tool that requires one works as one; the list says which can", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("must", { taskSupport: "required" }, () => text("as a task"));
    const extend: DoorOptions["extend"] = (mcp) =>
      void mcp.registerTool("plain", {}, async () => ({ content: [] }));
    const { client } = await openV1Door(tasks, { extend });
    const { tools } = await client.listTools();
    expect(tools.map(({ name, execution }) => [name, execution?.taskSupport])).toEqual([
      ["plain", "forbidden"],
      ["must", "required"],
      ["durable_task_get", "forbidden"],
      ["durable_task_respond", "forbidden"],
      ["durable_task_cancel", "forbidden"],
    ]);
    expect((await callStream(client, "must", undefined)).at(-1)).toMatchObject({ result: text("as a task") });
    for (const name of ["plain", "durable_task_get"])
      await expect(callAsTask(client, name)).rejects.toMatchObject({ code: -32601 });
  });

  test("a wish for a time to live is granted within bounds, and the answer says the truth", async () => {
    const { tasks, store } = startTasks({ maxRetentionMs: 7_200_000, retentionMs: 3_600_000 });
    tasks.taskTool("quick", {}, () => text("quick"));
    const { client } = await openV1Door(tasks);
    const ttlOf = async (ttl?: number): Promise<number | null> =>
      (await callAsTask(client, "quick", {}, ttl === undefined ? {} : { ttl })).ttl;
    expect(await ttlOf()).toBe(3_600_000);
    expect(await ttlOf(5_000_000)).toBe(5_000_000);
    expect(await ttlOf(1e15)).toBe(7_200_000);
    const { taskId } = await callAsTask(client, "quick", {}, { ttl: 0 });
    expect((await store.inner.get(taskId))?.retentionMs).toBe(60_000);
  });
});

describe("what is told meanwhile", () => {
  test.each(openRoads)("status and progress for the life of the task, over %s", async (road) => {
    const { tasks } = startTasks();
    const [go, end] = [gate(), gate()];
    tasks.taskTool("count", {}, async (_args, task) => {
      await go.opened;
      await task.progress({ done: 1, total: 2, message: "half" });
      await end.opened;
      // No news for a client.
      await task.saveCheckpoint(1);
      return text("counted");
    });
    const { client, received } = await openV1Door(tasks, { road });
    const _meta = { progressToken: "p" };
    const { task } = await client.request(
      { method: "tools/call", params: { name: "count", task: {}, _meta } },
      CreateTaskResultSchema,
    );
    const told = (method: string): unknown[] => received.filter((message) => message.method === method);
    const half = { params: { status: "working", statusMessage: expect.stringContaining("half") as unknown } };
    go.open();
    await vi.waitFor(() => expect(told("notifications/tasks/status")).toMatchObject([half]));
    end.open();
    await client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema);
    await vi.waitFor(() =>
      expect(told("notifications/tasks/status")).toMatchObject([half, { params: { status: "completed" } }]),
    );
    expect(told("notifications/progress")).toMatchObject([
      {
        params: {
          progressToken: "p",
          progress: 1,
          total: 2,
          _meta: { [relatedTask]: { taskId: task.taskId } },
        },
      },
    ]);
  });
});

test("a foreign task is answered like an unknown one", async () => {
  const { tasks } = startTasks({ scope: ({ authInfo }) => authInfo?.clientId ?? "" });
  gatedTool(tasks, "slow");
  greeter(tasks);
  let user = "ada";
  const auth: DoorOptions["auth"] = () => ({ token: "t", clientId: user, scopes: [] });
  const { client } = await openV1Door(tasks, { road: "http", auth });
  const { taskId } = await callAsTask(client, "slow");
  user = "bob";
  for (const call of taskMethods(client)) {
    const errorOf = async (id: string): Promise<string> =>
      call(id).then(
        () => "none",
        (error: Error) => error.message.replaceAll(id, "ID"),
      );
    expect(await errorOf(taskId)).toBe(await errorOf(never));
  }
  user = "ada";
  expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: "working" });
});
