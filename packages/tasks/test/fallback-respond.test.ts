import type { InputRequest, JsonObject } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { entries, openEntry, start, until, words, type Entry } from "./support/entries.ts";
import { HttpDoor } from "./support/http-door.ts";
import { recordText, startTasks } from "./support/started-tasks.ts";
import { askName, form, gatedTool, greeter, text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";
import type { WireResult } from "./support/wire.ts";

const get = "durable_task_get";
const respond = "durable_task_respond";

function one(field: JsonObject): InputRequest {
  return form("Which?", { it: field });
}

/** A task that asks, and ends with what it was answered. */
async function asking(requests: { readonly [key: string]: InputRequest }) {
  const started = startTasks();
  started.tasks.taskTool("ask", {}, async (_args, task) => ({
    content: [],
    structuredContent: await task.requestInput(requests),
  }));
  const client = await openEntry(started.tasks);
  const taskId = await start(client, "ask");
  await until(client, taskId, "input_required");
  return { ...started, client, taskId };
}

async function answersOf(client: Entry, taskId: string): Promise<unknown> {
  return (await until(client, taskId, "completed")).structuredContent?.["result"];
}

function faultOf(result: WireResult): JsonObject {
  expect(result.isError, words(result)).toBe(true);
  const error = result.structuredContent?.["error"] as JsonObject;
  // The text is the same envelope: many hosts show a model nothing else.
  expect(JSON.parse(words(result))).toEqual(error);
  expect(error).toMatchObject({ code: expect.any(String), message: expect.any(String) });
  expect(error["recoveryHint"]).toEqual(expect.any(String));
  return error;
}

const colours = { type: "string", enum: ["red", "dark blue"] };
const titled = { type: "string", oneOf: [{ const: "#f00", title: "Red" }] };
const named = { type: "string", enum: ["r", "b"], enumNames: ["Red", "Blue"] };
const swapped = {
  type: "string",
  oneOf: [
    { const: "a", title: "B" },
    { const: "b", title: "A" },
  ],
};
const several = { type: "array", items: { type: "string", enum: ["a", "b", "c"] } };

describe("response answers the one open question", () => {
  test.for([
    ["a text", { type: "string" }, "as it is ", "as it is "],
    ["a choice", colours, "red", "red"],
    ["a choice in other case and with blanks", colours, "  Dark BLUE ", "dark blue"],
    ["the title of a choice", titled, "red", "#f00"],
    ["the name of a choice", named, "Blue", "b"],
    ["a choice that is the title of another one", swapped, "B", "b"],
    ["a number", { type: "number" }, 7.5, 7.5],
    ["a number as text", { type: "number" }, " 7.5 ", 7.5],
    ["a whole number as text", { type: "integer" }, "7", 7],
    ["a number for a text field, as text", { type: "string" }, "7", "7"],
    ["true", { type: "boolean" }, true, true],
    ["yes", { type: "boolean" }, "Yes", true],
    ["false as text", { type: "boolean" }, "false", false],
    ["no", { type: "boolean" }, "no", false],
    ["the fields of the form", { type: "string" }, { it: "mine" }, "mine"],
    ["the fields of the form, as text", { type: "integer" }, { it: "12" }, 12],
    ["several choices", several, ["A", "c"], ["a", "c"]],
    ["one of several choices", several, "b", ["b"]],
  ] as const)("%s", async ([, field, response, expected]) => {
    const { client, taskId } = await asking({ it: one(field) });
    const reply = await client.call(respond, { taskId, response });
    expect(reply.isError, words(reply)).toBeUndefined();
    expect(await answersOf(client, taskId)).toEqual({
      it: { action: "accept", content: { it: expected } },
    });
  });

  test.for(entries)("%s: the reply says that the answer was taken, and what to do next", async ([, open]) => {
    const { tasks } = startTasks();
    const next = gate();
    tasks.taskTool("ask", {}, async (_args, task) => {
      const answer = await task.ask({ prompt: "Go on?" });
      await next.opened;
      return text(answer);
    });
    const client = await open(tasks);
    const taskId = await start(client, "ask");
    await until(client, taskId, "input_required");
    const reply = await client.call(respond, { taskId, response: "yes" });
    expect(words(reply)).toMatch(/^The answer was taken\..*NOT finished.*durable_task_get with/);
    expect(reply.structuredContent).toEqual({ taskId, status: "working" });
    next.open();
    expect((await until(client, taskId, "completed")).content).toEqual(text("yes").content);
  });

  test("a form of several fields takes them all in one answer", async () => {
    const trip = form("Where to?", { city: { type: "string" }, days: { type: "integer" } });
    const { client, taskId } = await asking({ trip });
    const asked = await client.call(get, { taskId });
    expect(words(asked)).toContain("Where to? Fields: city (string), days (integer).");
    expect(words(asked)).toContain('"response":{"city":"…","days":"…"}');
    await client.call(respond, { taskId, response: { city: "Rome", days: "3" } });
    expect(await answersOf(client, taskId)).toEqual({
      trip: { action: "accept", content: { city: "Rome", days: 3 } },
    });
  });

  test("a page that was opened needs no content, whatever is said about it", async () => {
    const page: InputRequest = {
      method: "elicitation/create",
      params: { mode: "url", message: "Sign in.", url: "https://id.example/login" },
    };
    const { client, taskId } = await asking({ page });
    const asked = await client.call(get, { taskId });
    expect(words(asked)).toContain("Open https://id.example/login and say when it is done.");
    await client.call(respond, { taskId, response: "done" });
    expect(await answersOf(client, taskId)).toEqual({ page: { action: "accept" } });
  });

  test.for(["decline", "cancel"] as const)("%s gives no answer, and the handler is told", async (action) => {
    const { client, taskId } = await asking({ it: one({ type: "string" }) });
    const reply = await client.call(respond, { taskId, action });
    expect(reply.isError, words(reply)).toBeUndefined();
    expect(await answersOf(client, taskId)).toEqual({ it: { action } });
  });

  test("a question of the work's second round is answered like the first", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) => {
      const first = await task.ask({ prompt: "First?" });
      return text(`${first} ${await task.ask({ prompt: "Second?" })}`);
    });
    const client = await openEntry(tasks);
    const taskId = await start(client, "ask");
    for (const [prompt, response] of [
      ["First?", "a"],
      ["Second?", "b"],
    ] as const) {
      const asked = await client.call(get, { taskId, waitSeconds: 5 });
      expect(words(asked)).toContain(prompt);
      await client.call(respond, { taskId, response });
    }
    expect((await until(client, taskId, "completed")).content).toEqual(text("a b").content);
  });
});

describe("P28: an answer that does not fit is a repairable error, and the question stays", () => {
  const count = one({ type: "integer", minimum: 1 });
  test.for([
    ["text for a number", count, { response: "seven" }],
    ["a number out of bounds", count, { response: 0 }],
    ["no choice", one(colours), { response: "green" }],
    ["a choice that is only near", one(colours), { response: "blue" }],
    ["neither yes nor no", one({ type: "boolean" }), { response: "maybe" }],
    ["a list for one text", one({ type: "string" }), { response: ["a"] }],
    ["a field that is not asked for", one({ type: "string" }), { response: { it: "x", more: 1 } }],
    ["a field that is missing", form("Both?", { a: colours, b: colours }), { response: { a: "red" } }],
    ["a text for several fields", form("Both?", { a: colours, b: colours }), { response: "red" }],
    ["no answer at all", count, {}],
    ["an empty set of answers", count, { answers: {} }],
    ["an answer to nobody", count, { answers: { nobody: 1 } }],
    ["an answer to what every object has", count, { answers: { constructor: 1 } }],
    ["both forms at once", count, { response: 1, answers: { it: 2 } }],
  ] as const satisfies readonly (readonly [string, InputRequest, JsonObject])[])(
    "%s",
    async ([, request, given]) => {
      const { client, taskId, store } = await asking({ it: request });
      const before = await recordText(store, taskId);
      const fault = faultOf(await client.call(respond, { taskId, ...given }));
      expect(fault["code"]).toBe("invalid_input_response");
      expect(await recordText(store, taskId)).toBe(before);
      const asked = await client.call(get, { taskId });
      expect(asked.structuredContent).toMatchObject({ status: "input_required", questions: [{ key: "it" }] });
      await client.call(respond, { taskId, action: "decline" });
      expect(await answersOf(client, taskId)).toEqual({ it: { action: "decline" } });
    },
  );

  test("the message says why, and a second try with the same question is taken", async () => {
    const { client, taskId } = await asking({ it: one(colours) });
    const fault = faultOf(await client.call(respond, { taskId, response: "green" }));
    expect(fault).toMatchObject({ param: "it", recoveryHint: expect.stringContaining("still open") });
    expect(fault["recoveryHint"]).toContain('Allowed answers: "red", "dark blue".');
    await client.call(respond, { taskId, response: "red" });
    expect(await answersOf(client, taskId)).toEqual({ it: { action: "accept", content: { it: "red" } } });
  });

  test.for([
    ["null", { response: null }],
    ["an action that is none", { response: "x", action: "maybe" }],
    ["answers that are a list", { answers: ["x"] }],
  ] as const)("%s is refused by the arguments' schema", async ([, given]) => {
    const { client, taskId, store } = await asking({ it: one({ type: "string" }) });
    const before = await recordText(store, taskId);
    expect((await client.call(respond, { taskId, ...given })).isError).toBe(true);
    expect(await recordText(store, taskId)).toBe(before);
  });

  test("a question that no model can answer is refused with a way out", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("sample", {}, async (_args, task) => {
      const params = { messages: [{ role: "user", content: { type: "text", text: "hi" } }], maxTokens: 5 };
      await task.requestInput({ it: { method: "sampling/createMessage", params } });
      return text("done");
    });
    const http = new HttpDoor(tasks);
    // Of a client that can be asked this; a model that has its id finds it in front of itself.
    const taskId = await http.startTask("sample", {}, { capabilities: { sampling: {} } });
    await http.until(taskId, "input_required");
    const client = await openEntry(tasks);
    const fault = faultOf(await client.call(respond, { taskId, response: "hello" }));
    expect(fault).toMatchObject({ code: "invalid_input_response" });
    await http.cancel(taskId);
  });

  test("a client without tasks is not asked for what only a client can give", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("roots", {}, async (_args, task) => {
      await task.requestInput({ it: { method: "roots/list" } });
      return text("done");
    });
    const result = await (await openEntry(tasks)).call("roots");
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "input_not_supported" } });
  });
});

describe("answers answers several, by key", () => {
  const two = { who: askName, trip: one({ type: "integer" }) };

  test("all at once, or one after the other", async () => {
    for (const rounds of [[{ who: "Ada", trip: 3 }], [{ trip: "3" }, { who: "Ada" }]]) {
      const { client, taskId } = await asking(two);
      for (const answers of rounds) {
        const reply = await client.call(respond, { taskId, answers });
        expect(reply.isError, words(reply)).toBeUndefined();
      }
      expect(await answersOf(client, taskId)).toEqual({
        who: { action: "accept", content: { name: "Ada" } },
        trip: { action: "accept", content: { it: 3 } },
      });
    }
  });

  test("P26: after one of two the other is asked for alone", async () => {
    const { client, taskId } = await asking(two);
    const reply = await client.call(respond, { taskId, answers: { who: "Ada" } });
    expect(reply.structuredContent).toMatchObject({ status: "input_required", questions: [{ key: "trip" }] });
    expect(words(reply)).toContain('"response":"…"');
    await client.call(respond, { taskId, response: 3 });
    expect(await answersOf(client, taskId)).toMatchObject({ trip: { content: { it: 3 } } });
  });

  test("one that does not fit holds back the others: nothing is taken, and nothing is lost", async () => {
    const { client, taskId, store } = await asking(two);
    const before = await recordText(store, taskId);
    const fault = faultOf(await client.call(respond, { taskId, answers: { who: "Ada", trip: "soon" } }));
    expect(fault).toMatchObject({ code: "invalid_input_response", param: "trip" });
    expect(await recordText(store, taskId)).toBe(before);
    await client.call(respond, { taskId, answers: { who: "Ada", trip: 3 } });
    await until(client, taskId, "completed");
  });

  test("a single response is refused with the keys, and decline goes for all that are open", async () => {
    const { client, taskId } = await asking(two);
    const fault = faultOf(await client.call(respond, { taskId, response: "Ada" }));
    expect(fault["recoveryHint"]).toMatch(/who.*trip|trip.*who/);
    await client.call(respond, { taskId, action: "decline" });
    expect(await answersOf(client, taskId)).toEqual({
      who: { action: "decline" },
      trip: { action: "decline" },
    });
  });

  test("decline by key leaves the other open", async () => {
    const { client, taskId } = await asking(two);
    const reply = await client.call(respond, { taskId, answers: { who: "" }, action: "decline" });
    expect(reply.structuredContent).toMatchObject({ questions: [{ key: "trip" }] });
    await client.call(respond, { taskId, response: "1" });
    expect(await answersOf(client, taskId)).toMatchObject({ who: { action: "decline" } });
  });
});

// CASES part 2, tasks: "answer never persisted ...; second answer told "Input delivered" though dropped".
describe("nobody is told that an answer was delivered which was not", () => {
  test.for(["completed", "working"] as const)("there is no question: the task is %s", async (status) => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    if (status === "completed") {
      tool.gate.open();
      await until(client, taskId, "completed");
    }
    const before = await recordText(store, taskId);
    const fault = faultOf(await client.call(respond, { taskId, response: "late" }));
    expect(fault["message"]).toContain(status);
    expect(await recordText(store, taskId)).toBe(before);
    tool.gate.open();
  });

  test("of two answers at once one is taken, and the other is told so", async () => {
    const { client, taskId, store, tasks } = await asking({ it: one({ type: "string" }) });
    const write = gate();
    const updates = (): number => store.calls.filter(({ method }) => method === "update").length;
    const before = updates();
    store.before = async (method) => {
      if (method === "update") await write.opened;
    };
    const first = client.call(respond, { taskId, response: "first" });
    const second = client.call(respond, { taskId, response: "second" });
    // Both have seen the open question, and one of them waits behind the write of the other.
    await expect.poll(() => tasks.stats().queuedWrites).toBe(1);
    await expect.poll(() => updates() - before).toBe(1);
    const reads = (): number => store.calls.filter(({ method }) => method === "get").length;
    for (let seen = -1; seen !== reads();) {
      seen = reads();
      await client.send("tools/list");
    }
    write.open();
    const replies = [await first, await second];
    const lost = replies.find(({ isError }) => isError === true);
    expect(replies.filter(({ isError }) => isError === true)).toHaveLength(1);
    expect(faultOf(lost ?? {})).toMatchObject({
      message: expect.stringContaining("was not used"),
      partial: { taken: [] },
    });
    const winner = replies[0] === lost ? "second" : "first";
    expect(await answersOf(client, taskId)).toEqual({ it: { action: "accept", content: { it: winner } } });
  });

  test("a respond that follows is told that it comes too late, and the first answer stays", async () => {
    const { tasks } = startTasks();
    const next = gate();
    tasks.taskTool("ask", {}, async (_args, task) => {
      const answer = await task.ask({ prompt: "Which?" });
      await next.opened;
      return text(answer);
    });
    const client = await openEntry(tasks);
    const taskId = await start(client, "ask");
    await until(client, taskId, "input_required");
    await client.call(respond, { taskId, response: "first" });
    expect(faultOf(await client.call(respond, { taskId, response: "second" }))["message"]).toContain(
      "working",
    );
    next.open();
    expect((await until(client, taskId, "completed")).content).toEqual(text("first").content);
  });

  test("a question that a cancel withdrew takes no answer", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const client = await openEntry(tasks);
    const taskId = await start(client, "greet");
    await until(client, taskId, "input_required");
    await client.call("durable_task_cancel", { taskId });
    faultOf(await client.call(respond, { taskId, response: "Ada" }));
    await until(client, taskId, "cancelled");
  });
});
