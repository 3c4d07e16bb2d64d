import { MemoryTaskStore } from "@longjobs/core";
import type {
  CreateTaskRequestHandlerExtra,
  TaskMessageQueue,
  TaskStore,
} from "@modelcontextprotocol/sdk/experimental/tasks";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolResultSchema, ElicitResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";

import { asSdkTaskStore, type Tasks } from "../../src/index.ts";
import { callAsTask, never, taskMethods } from "../support/client-2025.ts";
import { startTasks } from "../support/started-tasks.ts";
import { text } from "../support/tools.ts";
import { gate, type Gate } from "../support/turns.ts";
import { openV1Door, type DoorOptions } from "../support/v1-door.ts";

const capabilities = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };

/** A server that uses the SDK's own machinery, with a tool that ends when told and one that asks. */
function sdkServer(
  machinery: { readonly taskStore: TaskStore; readonly taskMessageQueue: TaskMessageQueue },
  go: Gate,
): McpServer {
  const mcp = new McpServer({ name: "own", version: "1.0.0" }, { capabilities, ...machinery });
  const config = { inputSchema: z.object({}), execution: { taskSupport: "required" } } as const;
  const read = {
    getTask: async () => {
      throw new Error("The SDK does not call this.");
    },
    getTaskResult: async () => {
      throw new Error("The SDK does not call this.");
    },
  };
  mcp.experimental.tasks.registerToolTask("wait", config, {
    ...read,
    createTask: async (_args: unknown, { taskStore, taskRequestedTtl }: CreateTaskRequestHandlerExtra) => {
      const task = await taskStore.createTask({ ttl: taskRequestedTtl ?? null, pollInterval: 10 });
      const end = async (): Promise<void> => {
        await go.opened;
        await taskStore.storeTaskResult(task.taskId, "completed", {
          content: [{ type: "text", text: "done" }],
        });
      };
      end().catch(() => undefined);
      return { task };
    },
  });
  mcp.experimental.tasks.registerToolTask("ask", config, {
    ...read,
    createTask: async (_args: unknown, { taskStore, sendRequest }: CreateTaskRequestHandlerExtra) => {
      const task = await taskStore.createTask({ pollInterval: 10 });
      const ask = async (): Promise<void> => {
        const requestedSchema = { type: "object", properties: { name: { type: "string" } } } as const;
        const params = { message: "Who?", requestedSchema };
        const related: object = { relatedTask: { taskId: task.taskId } };
        const answer = await sendRequest(
          { method: "elicitation/create", params },
          ElicitResultSchema,
          related,
        );
        const result = { content: [{ type: "text" as const, text: JSON.stringify(answer) }], isError: true };
        await taskStore.storeTaskResult(task.taskId, "failed", result);
      };
      ask().catch(() => undefined);
      return { task };
    },
  });
  return mcp;
}

function started(): {
  readonly tasks: Tasks;
  readonly go: Gate;
  readonly door: (options?: DoorOptions) => ReturnType<typeof openV1Door>;
} {
  const { tasks } = startTasks();
  const go = gate();
  const machinery = asSdkTaskStore(tasks);
  const server = (): McpServer => sdkServer(machinery, go);
  return { tasks, go, door: (options = {}) => openV1Door(tasks, { ...options, server }) };
}

describe.each(["memory", "http"] as const)("the SDK's own machinery over our records, over %s", (road) => {
  test("a task and its result", async () => {
    const { tasks, go, door } = started();
    const { client } = await door({ road });
    const { taskId } = await callAsTask(client, "wait");
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: "working" });
    expect((await client.experimental.tasks.listTasks()).tasks).toMatchObject([{ taskId }]);
    go.open();
    expect(await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject(
      text("done"),
    );
    expect(tasks.stats().attempts).toBe(0);
  });

  test("a question, and a failure", async () => {
    const { door } = started();
    const answer: DoorOptions["answer"] = () => ({ action: "accept", content: { name: "Ada" } });
    const { client } = await door({ road, answer });
    const { taskId } = await callAsTask(client, "ask");
    await vi.waitFor(async () =>
      expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: "input_required" }),
    );
    const result = await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
    expect(JSON.stringify(result)).toContain("Ada");
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({
      status: "failed",
      statusMessage: expect.stringContaining("Ada") as unknown,
    });
  });

  test("a cancel stands, and a late result is dropped", async () => {
    const { tasks, go, door } = started();
    const { client } = await door({ road });
    const { taskId } = await callAsTask(client, "wait");
    expect(await client.experimental.tasks.cancelTask(taskId)).toMatchObject({ status: "cancelled" });
    go.open();
    await vi.waitFor(() => expect(tasks.stats().attempts).toBe(0));
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: "cancelled" });
    await expect(client.experimental.tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 });
  });
});

test("a task of another session is unknown", async () => {
  const { door } = started();
  const { client: ada } = await door({ road: "http" });
  const { client: bob } = await door({ road: "http" });
  const { taskId } = await callAsTask(ada, "wait");
  for (const call of taskMethods(bob)) {
    const errorOf = async (id: string): Promise<string> =>
      call(id).then(
        () => "none",
        (error: Error) => error.message.replaceAll(id, "ID"),
      );
    expect(await errorOf(taskId)).toBe(await errorOf(never));
  }
  expect((await bob.experimental.tasks.listTasks()).tasks).toEqual([]);
});

test("after a restart a finished task is still there, and one that was working ended as interrupted", async () => {
  const store = new MemoryTaskStore();
  const before = startTasks({ store });
  const { taskStore } = asSdkTaskStore(before.tasks);
  const request = { method: "tools/call", params: { name: "wait" } };
  const done = await taskStore.createTask({ ttl: 1 }, 1, request);
  await taskStore.storeTaskResult(done.taskId, "completed", { content: [] });
  expect((await store.get(done.taskId))?.retentionMs, "long enough to be fetched").toBe(60_000);
  const failed = await taskStore.createTask({}, 2, request);
  await taskStore.storeTaskResult(failed.taskId, "failed", { content: [] });
  const lost = await taskStore.createTask({}, 3, request);
  await before.tasks.close({ shutdownGraceMs: 0 });
  const { taskStore: after } = asSdkTaskStore(startTasks({ store }).tasks);
  expect(await after.getTask(done.taskId)).toMatchObject({ status: "completed" });
  expect(await after.getTaskResult(done.taskId)).toEqual({ content: [] });
  expect(await after.getTask(failed.taskId)).toMatchObject({ status: "failed" });
  expect(await after.getTask(lost.taskId)).toMatchObject({ status: "failed" });
  await expect(after.getTaskResult(lost.taskId)).rejects.toMatchObject({ data: { reason: "interrupted" } });
  await expect(after.storeTaskResult(lost.taskId, "completed", { content: [] })).rejects.toThrow();
});

test("the list comes in pages, and the queue has a bound", async () => {
  const { taskStore, taskMessageQueue } = asSdkTaskStore(startTasks().tasks);
  for (let each = 0; each < 101; each += 1) await taskStore.createTask({}, each, { method: "tools/call" });
  const { tasks: first, nextCursor } = await taskStore.listTasks();
  const { tasks: second, nextCursor: end } = await taskStore.listTasks(nextCursor);
  expect([first.length, second.length, end]).toEqual([100, 1, undefined]);
  await expect(taskStore.listTasks("none")).rejects.toMatchObject({ code: -32602 });
  await taskMessageQueue.enqueue("t", { type: "request" }, undefined, 1);
  await expect(taskMessageQueue.enqueue("t", { type: "request" }, undefined, 1)).rejects.toThrow(
    /1 messages/,
  );
  expect(await taskMessageQueue.dequeue("t")).toEqual({ type: "request" });
  expect(await taskMessageQueue.dequeueAll("t")).toEqual([]);
});
