import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  type CallToolResult,
} from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test, vi } from "vitest";

import { callAsTask, callStream } from "../support/client-2025.ts";
import { startTasks } from "../support/started-tasks.ts";
import { askName, form, greeter, text } from "../support/tools.ts";
import { gate } from "../support/turns.ts";
import {
  allRoads,
  closedRoads,
  openRoads,
  openV1Door,
  type Road,
  type DoorOptions,
  type V1Door,
} from "../support/v1-door.ts";
import { relatedTask } from "../support/wire-2025.ts";

const ada: DoorOptions["answer"] = () => ({ action: "accept", content: { name: "Ada" } });

/** A client that keeps every question until the test answers it. */
function slowAnswers(): {
  readonly answer: NonNullable<DoorOptions["answer"]>;
  readonly asked: string[];
  readonly go: ReturnType<typeof gate>;
} {
  const go = gate();
  const asked: string[] = [];
  const answer: NonNullable<DoorOptions["answer"]> = async (message) => {
    asked.push(message);
    await go.opened;
    return { action: "accept", content: { name: "Ada" } };
  };
  return { answer, asked, go };
}

function resultOf(client: Client, taskId: string, signal?: AbortSignal): Promise<CallToolResult> {
  const options = signal === undefined ? {} : { signal };
  return client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options);
}

function sent({ received }: V1Door, method: string): unknown[] {
  return received.filter((message) => message.method === method);
}

async function respond(client: Client, taskId: string, response: string): Promise<void> {
  await client.callTool({ name: "durable_task_respond", arguments: { taskId, response } });
}

describe("a question goes to the client that waits for the result", () => {
  test.each<[Road, boolean]>([["memory", true], ...openRoads.map((road): [Road, boolean] => [road, false])])(
    "over %s, low-level server: %s",
    async (road, lowLevel) => {
      const { tasks } = startTasks();
      greeter(tasks);
      const door = await openV1Door(tasks, { road, lowLevel, answer: ada });
      const messages = await callStream(door.client, "greet");
      expect(messages).toContainEqual(
        expect.objectContaining({
          type: "taskStatus",
          task: expect.objectContaining({ status: "input_required" }),
        }),
      );
      expect(JSON.stringify(messages.at(-1))).toContain("Ada");
      const [question, ...more] = sent(door, "elicitation/create");
      expect(more).toEqual([]);
      expect(question).toMatchObject({
        params: {
          message: "Your name?",
          _meta: { [relatedTask]: { taskId: expect.any(String) as unknown } },
        },
      });
    },
  );

  test.each(openRoads)("two at once, a link to open, and one after the other, over %s", async (road) => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) => {
      const open = { mode: "url", url: "https://example.com/", message: "Open" };
      const both = await task.requestInput({
        who: askName,
        page: { method: "elicitation/create", params: open },
      });
      return text(JSON.stringify([both, await task.ask({ prompt: "Sure?", choices: ["yes", "no"] })]));
    });
    const answer: DoorOptions["answer"] = (message, { mode }) => {
      if (mode === "url") return { action: "accept" };
      const content: { [field: string]: string } = message === "Sure?" ? { answer: "yes" } : { name: "Ada" };
      return { action: "accept", content };
    };
    const door = await openV1Door(tasks, { road, answer });
    const { taskId } = await callAsTask(door.client, "ask");
    const result = await resultOf(door.client, taskId);
    expect(JSON.stringify(result.content)).toMatch(/Ada.*yes/);
    expect(sent(door, "elicitation/create")).toHaveLength(3);
  });

  test("again, with the reason, when the answer does not fit", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("age", {}, async (_args, task) => {
      const { age } = await task.requestInput({ age: form("How old?", { years: { type: "integer" } }) });
      return text(JSON.stringify(age));
    });
    let times = 0;
    const answer: DoorOptions["answer"] = () => {
      times += 1;
      return { action: "accept", content: { years: times === 1 ? "many" : 7 } };
    };
    const door = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(door.client, "age");
    expect(JSON.stringify(await resultOf(door.client, taskId))).toContain("7");
    expect(times).toBe(2);
  });

  test("of any kind that it declares, with a tool that has no other way to ask", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("sample", { fallback: "wait" }, async (_args, task) => {
      const params = { messages: [], maxTokens: 10 };
      const { it } = await task.requestInput({ it: { method: "sampling/createMessage", params } });
      return text(JSON.stringify(it));
    });
    const { client } = await openV1Door(tasks, { capabilities: { sampling: {} } });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: "m",
      role: "assistant",
      content: { type: "text", text: "sampled" },
    }));
    const { taskId } = await callAsTask(client, "sample");
    expect(JSON.stringify(await resultOf(client, taskId))).toContain("sampled");
    const { client: other } = await openV1Door(tasks);
    const refused = await resultOf(other, (await callAsTask(other, "sample")).taskId);
    expect(refused).toMatchObject({ isError: true, structuredContent: { code: "input_not_supported" } });
  });
});

describe("whoever answers first", () => {
  test("a model that answers withdraws the question from the client", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const { answer, asked, go } = slowAnswers();
    const door = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(door.client, "greet");
    const result = resultOf(door.client, taskId);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    const { client: model } = await openV1Door(tasks);
    await respond(model, taskId, "Grace");
    expect(JSON.stringify(await result)).toContain("Grace");
    await vi.waitFor(() => expect(sent(door, "notifications/cancelled")).toHaveLength(1));
    go.open();
  });

  test("of two questions only the one that a model answers is withdrawn", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) =>
      text(JSON.stringify(await task.requestInput({ a: askName, b: askName }))),
    );
    const { answer, asked, go } = slowAnswers();
    const door = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(door.client, "ask");
    const result = resultOf(door.client, taskId);
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    const answers = { a: "Grace" };
    await door.client.callTool({ name: "durable_task_respond", arguments: { taskId, answers } });
    await vi.waitFor(() => expect(sent(door, "notifications/cancelled")).toHaveLength(1));
    go.open();
    expect(JSON.stringify(await result)).toMatch(/Grace.*Ada/);
    expect(sent(door, "notifications/cancelled")).toHaveLength(1);
  });

  test("of two waits on one connection the newer one asks, and both get the result", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const { answer, asked, go } = slowAnswers();
    const door = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(door.client, "greet");
    const first = resultOf(door.client, taskId);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    const second = resultOf(door.client, taskId);
    await vi.waitFor(() => expect(sent(door, "notifications/cancelled")).toHaveLength(1));
    go.open();
    expect(await first).toEqual(await second);
    expect(asked).toHaveLength(2);
  });

  test("an answered question is not withdrawn afterwards", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const door = await openV1Door(tasks, { answer: ada });
    await callStream(door.client, "greet");
    await door.client.ping();
    expect(sent(door, "notifications/cancelled")).toEqual([]);
  });

  test("a cancel while the question is open ends the wait", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const { answer, asked, go } = slowAnswers();
    const door = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(door.client, "greet");
    const result = resultOf(door.client, taskId);
    result.catch(() => undefined);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    await door.client.experimental.tasks.cancelTask(taskId);
    await expect(result).rejects.toMatchObject({ code: -32603 });
    await vi.waitFor(() => expect(sent(door, "notifications/cancelled")).toHaveLength(1));
    go.open();
  });
});

describe("a wait that ends leaves the question open", () => {
  test("given up by the client, and asked again by the next wait", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const { answer, asked, go } = slowAnswers();
    const { client } = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(client, "greet");
    const controller = new AbortController();
    const first = resultOf(client, taskId, controller.signal);
    first.catch(() => undefined);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    controller.abort();
    await expect(first).rejects.toThrow();
    go.open();
    expect(JSON.stringify(await resultOf(client, taskId))).toContain("Ada");
    expect(asked).toHaveLength(2);
  });

  test("with a socket that broke without a word: the newest wait puts the question", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const { answer, asked, go } = slowAnswers();
    const { client, breakConnections } = await openV1Door(tasks, { road: "http", answer });
    const { taskId } = await callAsTask(client, "greet");
    const first = resultOf(client, taskId);
    first.catch(() => undefined);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    breakConnections();
    const second = resultOf(client, taskId);
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    go.open();
    expect(JSON.stringify(await second)).toContain("Ada");
  });

  test("a client that fails to answer does not end the task: somebody else may", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const answer: DoorOptions["answer"] = () => {
      throw new Error("no window to ask in");
    };
    const door = await openV1Door(tasks, { answer });
    const { taskId } = await callAsTask(door.client, "greet");
    const result = resultOf(door.client, taskId);
    await vi.waitFor(() => expect(sent(door, "elicitation/create")).toHaveLength(1));
    await respond(door.client, taskId, "Grace");
    expect(JSON.stringify(await result)).toContain("Grace");
    expect(sent(door, "elicitation/create")).toHaveLength(1);
  });
});

test.each<[Road, DoorOptions["answer"]]>([
  ["memory", undefined],
  ["v2 memory", undefined],
  ...closedRoads.map((road): [Road, DoorOptions["answer"]] => [road, ada]),
])(
  "where no question can be put, over %s, the status names the tool that answers, and the wait goes on",
  async (road, answer) => {
    const { tasks } = startTasks();
    greeter(tasks);
    const door = await openV1Door(tasks, { road, ...(answer === undefined ? {} : { answer }) });
    const { taskId } = await callAsTask(door.client, "greet");
    const result = resultOf(door.client, taskId);
    await vi.waitFor(async () =>
      expect(await door.client.experimental.tasks.getTask(taskId)).toMatchObject({
        status: "input_required",
        statusMessage: expect.stringMatching(/Your name\?[^]*durable_task_respond/) as unknown,
      }),
    );
    await respond(door.client, taskId, "Grace");
    expect(JSON.stringify(await result)).toContain("Grace");
    expect(sent(door, "elicitation/create")).toEqual([]);
  },
);

test.each(allRoads)("over %s, a tool that must be a task can be answered by a model too", async (road) => {
  const { tasks } = startTasks();
  tasks.taskTool("must", { taskSupport: "required" }, async (_args, task) =>
    text(await task.ask({ prompt: "Who?" })),
  );
  const { client } = await openV1Door(tasks, { road });
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toContain("durable_task_respond");
  const { taskId } = await callAsTask(client, "must");
  await vi.waitFor(async () =>
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({
      statusMessage: expect.stringContaining("durable_task_respond") as unknown,
    }),
  );
  await respond(client, taskId, "Grace");
  expect(await resultOf(client, taskId)).toMatchObject(text("Grace"));
});
