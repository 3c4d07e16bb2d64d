import { TaskLifecycle, type InputRequest, type TaskAttempt } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { createAsk } from "../src/ask.ts";
import type { Ask, ToolResult, ToolTask } from "../src/index.ts";
import { openEntry, start, until, type Entry } from "./support/entries.ts";
import { HttpDoor } from "./support/http-door.ts";
import type { SpyStore } from "./support/spy-store.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";

const get = "durable_task_get";
const respond = "durable_task_respond";

/** A task whose handler is given. */
async function asking(handler: (task: ToolTask) => Promise<ToolResult>) {
  const started = startTasks();
  started.tasks.taskTool("ask", {}, (_args, task) => handler(task));
  const client = await openEntry(started.tasks);
  return { ...started, client, taskId: await start(client, "ask") };
}

interface OpenQuestion {
  readonly key: string;
  readonly prompt: string;
}

async function questionsOf(client: Entry, taskId: string, count: number): Promise<readonly OpenQuestion[]> {
  const questions = async (): Promise<readonly OpenQuestion[]> => {
    const { structuredContent } = await client.call(get, { taskId, waitSeconds: 5 });
    return (structuredContent?.["questions"] ?? []) as readonly OpenQuestion[];
  };
  await expect.poll(async () => (await questions()).length).toBe(count);
  return questions();
}

/** The wire keys of every question that was ever asked. */
async function keysOf(store: SpyStore, taskId: string): Promise<readonly string[]> {
  return Object.keys((await store.inner.get(taskId))?.inputs ?? {}).toSorted();
}

describe("ask is one question in one call", () => {
  test("for a client with tasks it is a form with one field", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) =>
      text(await task.ask({ prompt: "Which colour?", choices: ["red", "blue"] })),
    );
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("ask");
    const { inputRequests = {} } = await http.until(taskId, "input_required");
    const [key = ""] = Object.keys(inputRequests);
    expect(inputRequests[key]).toEqual({
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "Which colour?",
        requestedSchema: {
          type: "object",
          properties: { answer: { type: "string", enum: ["red", "blue"] } },
          required: ["answer"],
        },
      },
    });
    // CASES part 2, tasks: "`choices` not enforced": here the question comes again with the reason.
    await http.update(taskId, { [key]: { action: "accept", content: { answer: "green" } } });
    const again = await http.get(taskId);
    const [fresh = ""] = Object.keys(again.inputRequests ?? {});
    expect(fresh).not.toBe(key);
    expect(again.inputRequests?.[fresh]?.params?.message).toContain("Which colour?");
    await http.update(taskId, { [fresh]: { action: "accept", content: { answer: "blue" } } });
    expect((await http.until(taskId, "completed")).result?.content).toEqual(text("blue").content);
  });

  test("several may be open at once, and each gets its own answer", async () => {
    const { client, taskId } = await asking(async (task) => {
      const answers = await Promise.all(["One?", "Two?", "Three?"].map((prompt) => task.ask({ prompt })));
      return text(answers.join(" "));
    });
    const questions = await questionsOf(client, taskId, 3);
    const answers = Object.fromEntries(questions.map(({ key, prompt }) => [key, prompt.toLowerCase()]));
    await client.call(respond, { taskId, answers });
    expect((await until(client, taskId, "completed")).content).toEqual(text("one? two? three?").content);
  });

  // CASES part 2, tasks: "parallel needInput: one resolver per task; first never resolves, task stuck working".
  test("of several, answered one after the other in any order, none is forgotten", async () => {
    const { client, taskId } = await asking(async (task) => {
      const answers = await Promise.all(["One?", "Two?"].map((prompt) => task.ask({ prompt })));
      return text(answers.join(" "));
    });
    for (const { key, prompt } of (await questionsOf(client, taskId, 2)).toReversed())
      await client.call(respond, { taskId, answers: { [key]: prompt } });
    expect((await until(client, taskId, "completed")).content).toEqual(text("One? Two?").content);
  });

  test("the same prompt twice is two questions, one after the other and at once", async () => {
    const { client, taskId, store } = await asking(async (task) => {
      const first = await task.ask({ prompt: "Again?" });
      const [second, third] = await Promise.all([
        task.ask({ prompt: "Again?" }),
        task.ask({ prompt: "Again?" }),
      ]);
      return text([first, second, third].join(" "));
    });
    await questionsOf(client, taskId, 1);
    await client.call(respond, { taskId, response: "a" });
    const [second, third] = await questionsOf(client, taskId, 2);
    const [low, high] = [second?.key ?? "", third?.key ?? ""].toSorted();
    const keys = await keysOf(store, taskId);
    await client.call(respond, { taskId, answers: { [low ?? ""]: "b", [high ?? ""]: "c" } });
    expect((await until(client, taskId, "completed")).content).toEqual(text("a b c").content);
    expect(keys).toHaveLength(3);
    expect(keys.map((key) => key.replace(/^ask-[0-9a-f]{16}-/, ""))).toEqual(["1", "2", "3"]);
  });

  test("the same prompt with other choices is another question", async () => {
    const { client, taskId, store } = await asking(async (task) => {
      const asked = [
        task.ask({ prompt: "Go?" }),
        task.ask({ prompt: "Go?", choices: ["yes"] }),
        task.ask({ prompt: "Go?", choices: ["no"] }),
      ];
      return text((await Promise.all(asked)).join(" "));
    });
    await questionsOf(client, taskId, 3);
    expect((await keysOf(store, taskId)).every((key) => key.endsWith("-1"))).toBe(true);
    await client.call("durable_task_cancel", { taskId });
  });

  test.for([
    ["decline", "input_declined"],
    ["cancel", "input_cancelled"],
  ] as const)("%s rejects with %s, which the handler may catch or let through", async ([action, code]) => {
    const { client, taskId } = await asking(async (task) => {
      const first = await task.ask({ prompt: "First?" }).catch((error: { code: string }) => error.code);
      await task.ask({ prompt: `Second, after ${first}?` });
      return text("never");
    });
    await questionsOf(client, taskId, 1);
    await client.call(respond, { taskId, action });
    const [second] = await questionsOf(client, taskId, 1);
    expect(second?.prompt).toBe(`Second, after ${code}?`);
    await client.call(respond, { taskId, action });
    const ended = await until(client, taskId, "completed");
    expect(ended).toMatchObject({
      isError: true,
      structuredContent: { result: { code, recoveryHint: expect.any(String) } },
    });
  });

  test.for([
    ["no prompt", {}],
    ["a prompt of nothing", { prompt: "" }],
    ["no choice to choose", { prompt: "Go?", choices: [] }],
    ["choices that are no texts", { prompt: "Go?", choices: [1, 2] }],
    ["choices that are a text", { prompt: "Go?", choices: "yes" }],
  ] as const)("%s is a mistake that nobody is asked about", async ([, question]) => {
    const { tasks, store } = startTasks();
    const kinds: unknown[] = [];
    tasks.taskTool("ask", {}, async (_args, task) => {
      await task.ask(question as unknown as Ask).catch((error: unknown) => kinds.push(error));
      return text("done");
    });
    await (await openEntry(tasks)).call("ask");
    expect(kinds).toEqual([expect.any(TypeError)]);
    expect(store.calls).toEqual([]);
  });

  test("a mistake, or a prompt that cannot be kept, does not stand in the way of the next question", async () => {
    const { client, taskId } = await asking(async (task) => {
      const bad = task.ask({ prompt: "" });
      const good = task.ask({ prompt: "Good?" });
      await bad.catch(() => undefined);
      return text(await good);
    });
    await questionsOf(client, taskId, 1);
    await client.call(respond, { taskId, response: "yes" });
    expect((await until(client, taskId, "completed")).content).toEqual(text("yes").content);
  });

  test("a question that nobody waits for is no unhandled rejection when the work is told to stop", async () => {
    const asked = gate();
    const { client, taskId } = await asking(async (task) => {
      void task.ask({ prompt: "Ahead?" });
      asked.open();
      await new Promise<void>((resolve) => {
        task.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      throw task.signal.reason;
    });
    await asked.opened;
    await questionsOf(client, taskId, 1);
    await client.call("durable_task_cancel", { taskId });
    await until(client, taskId, "cancelled");
  });

  test("a client that waits to the end cannot be asked, and the handler is told so", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", { fallback: "wait" }, async (_args, task) =>
      text(await task.ask({ prompt: "Go?" })),
    );
    const result = await (await openEntry(tasks)).call("ask");
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "input_not_supported" } });
  });
});

describe("P27: a handler that starts again gets the answers already given", () => {
  /** A second life on the store of a first one that ended without a word. */
  async function takeOver(store: SpyStore, taskId: string) {
    const lifecycle = new TaskLifecycle({ store: store.inner, waitPollMs: 20 });
    const attempt = await lifecycle.acquire(taskId);
    return { attempt, ask: createAsk(attempt), close: () => lifecycle.close({ shutdownGraceMs: 0 }) };
  }

  /** The one open question is answered through another server. */
  async function answerLater(store: SpyStore, taskId: string, response: string): Promise<void> {
    const { tasks } = startTasks({ store: store.inner });
    tasks.taskTool("ask", {}, () => text("not run again"));
    const client = await openEntry(tasks);
    const reply = await client.call(respond, { taskId, response });
    expect(reply.isError, JSON.stringify(reply)).toBeUndefined();
  }

  test("under the same key, without a second prompt, in whatever order the answers come", async () => {
    const { client, taskId, store, tasks } = await asking(async (task) => {
      const first = await task.ask({ prompt: "First?" });
      return text(`${first} ${await task.ask({ prompt: "Second?" })}`);
    });
    await questionsOf(client, taskId, 1);
    await client.call(respond, { taskId, response: "a" });
    await questionsOf(client, taskId, 1);
    const before = await keysOf(store, taskId);
    await tasks.close({ shutdownGraceMs: 0 });
    const life = await takeOver(store, taskId);
    expect(await life.ask({ prompt: "First?" })).toBe("a");
    const second = life.ask({ prompt: "Second?" });
    await expect.poll(async () => (await store.inner.get(taskId))?.status).toBe("input_required");
    expect(await keysOf(store, taskId)).toEqual(before);
    await answerLater(store, taskId, "b");
    expect(await second).toBe("b");
    await life.attempt.complete({ content: [] });
    await life.close();
  });

  test("from its checkpoint on: a question asked twice before it is the third one after it", async () => {
    const { client, taskId, store, tasks } = await asking(async (task) => {
      await task.ask({ prompt: "Next?" });
      await task.ask({ prompt: "Next?" });
      await task.saveCheckpoint("two answered");
      return text(await task.ask({ prompt: "Next?" }));
    });
    for (const response of ["1st", "2nd", "3rd"]) {
      await questionsOf(client, taskId, 1);
      if (response !== "3rd") await client.call(respond, { taskId, response });
    }
    await tasks.close({ shutdownGraceMs: 0 });
    const life = await takeOver(store, taskId);
    expect(life.attempt.checkpoint).toBe("two answered");
    const third = life.ask({ prompt: "Next?" });
    await answerLater(store, taskId, "3rd");
    expect(await third).toBe("3rd");
    const keys = await keysOf(store, taskId);
    expect(keys.map((key) => key.slice(-2)).toSorted()).toEqual(["-1", "-2", "-3"]);
    await life.attempt.complete({ content: [] });
    await life.close();
  });

  test("from the top without a checkpoint: it hears the answers again, in order", async () => {
    const { client, taskId, store, tasks } = await asking(async (task) => {
      await task.ask({ prompt: "Next?" });
      await task.ask({ prompt: "Next?" });
      return text(await task.ask({ prompt: "Last?" }));
    });
    for (const response of ["1st", "2nd"]) {
      await questionsOf(client, taskId, 1);
      await client.call(respond, { taskId, response });
    }
    await questionsOf(client, taskId, 1);
    await tasks.close({ shutdownGraceMs: 0 });
    const life = await takeOver(store, taskId);
    expect([await life.ask({ prompt: "Next?" }), await life.ask({ prompt: "Next?" })]).toEqual([
      "1st",
      "2nd",
    ]);
    await life.attempt.complete({ content: [] });
    await life.close();
  });
});

test("keys depend on the question alone: on no run, no process and no order of other questions", async () => {
  const seen: string[][] = [];
  for (const order of [
    ["A?", "B?"],
    ["B?", "A?"],
  ]) {
    const keys: string[] = [];
    const ask = createAsk({
      countAsked: () => 1,
      requestInput: async (requests: { readonly [key: string]: InputRequest }) => {
        const [key = ""] = Object.keys(requests);
        keys.push(`${key} ${JSON.stringify(requests[key]?.params?.["message"])}`);
        return { [key]: { action: "accept", content: { answer: "x" } } };
      },
    } as unknown as TaskAttempt);
    for (const prompt of order) await ask({ prompt });
    seen.push(keys.toSorted());
  }
  expect(seen[0]).toEqual(seen[1]);
  expect(seen[0]?.[0]).toMatch(/^ask-[0-9a-f]{16}-1 /);
});
