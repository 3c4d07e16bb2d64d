import { describe, expect, test } from "vitest";

import { errorOf, HttpDoor } from "./support/http-door.ts";
import { recordText, startTasks } from "./support/started-tasks.ts";
import { askName, form, greeter, text } from "./support/tools.ts";

const ada = { action: "accept", content: { name: "Ada" } };

/** A greeter that waits for a name. */
async function waitingGreeter() {
  const started = startTasks();
  greeter(started.tasks);
  const http = new HttpDoor(started.tasks);
  const taskId = await http.startTask("greet");
  await http.until(taskId, "input_required");
  return { ...started, http, taskId };
}

describe("P26: answers are taken one by one", () => {
  test("one of two leaves the other open; the first answer wins; unknown keys are ignored", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("two", {}, async (_args, task) => {
      const answers = await task.requestInput({ a: askName, b: form("Sure?", { ok: { type: "boolean" } }) });
      return { content: [], structuredContent: answers };
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("two");
    const both = await http.until(taskId, "input_required");
    expect(Object.keys(both.inputRequests ?? {})).toEqual(["a", "b"]);
    await http.update(taskId, { a: ada, nobody: ada });
    const rest = await http.get(taskId);
    expect(rest.status).toBe("input_required");
    expect(Object.keys(rest.inputRequests ?? {})).toEqual(["b"]);
    await http.update(taskId, { a: { action: "accept", content: { name: "Eve" } } });
    await http.update(taskId, { b: { action: "accept", content: { ok: true } } });
    const { result } = await http.until(taskId, "completed");
    expect(result?.structuredContent).toEqual({ a: ada, b: { action: "accept", content: { ok: true } } });
  });

  test("two clients that answer at once: each question gets one of the answers", async () => {
    const { http, taskId } = await waitingGreeter();
    const eve = { action: "accept", content: { name: "Eve" } };
    await Promise.all([http.update(taskId, { who: ada }), http.update(taskId, { who: eve })]);
    const { result } = await http.until(taskId, "completed");
    expect([ada, eve]).toContainEqual(result?.structuredContent?.["who"]);
  });

  test("an empty update changes nothing, and an update without answers is -32602", async () => {
    const { http, store, taskId } = await waitingGreeter();
    const before = await recordText(store, taskId);
    await http.update(taskId, {});
    expect(errorOf(await http.send("tasks/update", { taskId })).code).toBe(-32_602);
    expect(await recordText(store, taskId)).toBe(before);
  });

  test("decline and cancel need no content", async () => {
    for (const action of ["decline", "cancel"]) {
      const { http, taskId } = await waitingGreeter();
      await http.update(taskId, { who: { action } });
      const { result } = await http.until(taskId, "completed");
      expect(result?.structuredContent).toEqual({ who: { action } });
    }
  });

  test("an update of a finished task is acknowledged and changes nothing", async () => {
    const { http, store, taskId } = await waitingGreeter();
    await http.update(taskId, { who: ada });
    await http.until(taskId, "completed");
    const before = await recordText(store, taskId);
    await http.update(taskId, { who: { action: "decline" } });
    expect(await recordText(store, taskId)).toBe(before);
  });
});

describe("P28: a bad answer is acknowledged and asked for again under a fresh key, with the reason", () => {
  test.for([
    ["a wrong type", { action: "accept", content: { name: 7 } }],
    ["a missing property", { action: "accept", content: {} }],
    ["no content at all", { action: "accept" }],
    ["a property that was not asked for", { action: "accept", content: { name: "Ada", admin: true } }],
    ["an unknown action", { action: "maybe" }],
    ["an empty object", {}],
    ["text", "Ada"],
    ["a list", [ada]],
    ["null", null],
    ["a result in place of a response", { result: ada }],
    ["content that is no form", { action: "accept", content: { name: { first: "Ada" } } }],
  ] as const)("%s", async ([, bad]) => {
    const { http, taskId } = await waitingGreeter();
    await http.update(taskId, { who: bad });
    const again = await http.get(taskId);
    expect(again.status).toBe("input_required");
    const [[key, request] = []] = Object.entries(again.inputRequests ?? {});
    expect(key).toMatch(/^who~/);
    expect(request?.params?.message).toMatch(/^Your name\?\n\nThe last answer was not accepted: ./);
    await http.update(taskId, { who: ada });
    expect((await http.get(taskId)).status, "the old key is used up").toBe("input_required");
    await http.update(taskId, { [key ?? ""]: ada });
    const { result } = await http.until(taskId, "completed");
    expect(result?.structuredContent).toEqual({ who: ada });
  });

  test("good answers of the same update are kept", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("two", {}, async (_args, task) => {
      const answers = await task.requestInput({ a: askName, b: askName });
      return { content: [], structuredContent: answers };
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("two");
    await http.until(taskId, "input_required");
    await http.update(taskId, { a: "no object", b: ada });
    const keys = Object.keys((await http.get(taskId)).inputRequests ?? {});
    expect(keys).toEqual([expect.stringMatching(/^a~/)]);
    await http.update(taskId, { [keys[0] ?? ""]: { action: "decline" } });
    const { result } = await http.until(taskId, "completed");
    expect(result?.structuredContent).toEqual({ a: { action: "decline" }, b: ada });
  });

  test("the fourth bad answer goes to the handler, as an error the model can read", async () => {
    const { http, taskId } = await waitingGreeter();
    const used: string[] = [];
    for (let times = 0; times < 4; times += 1) {
      const { inputRequests = {} } = await http.until(taskId, "input_required");
      const [key = ""] = Object.keys(inputRequests);
      used.push(key);
      await http.update(taskId, { [key]: { action: "accept", content: {} } });
    }
    expect(new Set(used).size, "P27: a key means one question").toBe(4);
    const { result } = await http.until(taskId, "completed");
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "invalid_input_response" } });
  });

  test("formats, enumerations and bounds of the form are checked too", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) => {
      const properties = { mail: { type: "string", format: "email" }, n: { type: "integer", maximum: 3 } };
      const { it } = await task.requestInput({ it: form("Mail?", properties) });
      return { content: [], structuredContent: it };
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("ask");
    for (const content of [
      { mail: "no", n: 1 },
      { mail: "a@b.example", n: 4 },
      { mail: "a@b.example", n: 3 },
    ]) {
      const { inputRequests = {} } = await http.until(taskId, "input_required");
      await http.update(taskId, { [Object.keys(inputRequests)[0] ?? ""]: { action: "accept", content } });
    }
    const { result } = await http.until(taskId, "completed");
    expect(result?.structuredContent).toEqual({ action: "accept", content: { mail: "a@b.example", n: 3 } });
  });
});

describe("P27: a question is asked once", () => {
  test("the same key with the same request gives the answer that is there; with another it is refused", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("twice", {}, async (_args, task) => {
      const first = await task.requestInput({ who: askName });
      const second = await task.requestInput({ who: askName });
      const other = form("Another?", { name: { type: "string" } });
      const refusal = await task.requestInput({ who: other }).catch(({ code }: { code: string }) => code);
      return { content: [], structuredContent: { first, second, refusal } };
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("twice");
    await http.until(taskId, "input_required");
    await http.update(taskId, { who: ada });
    const { result } = await http.until(taskId, "completed");
    const given = { who: ada };
    expect(result?.structuredContent).toEqual({ first: given, second: given, refusal: "input_key_reused" });
  });

  test("two rounds may be open at once", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("parallel", {}, async (_args, task) => {
      const [a, b] = await Promise.all([
        task.requestInput({ a: askName }),
        task.requestInput({ b: askName }),
      ]);
      return { content: [], structuredContent: { ...a, ...b } };
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("parallel");
    await expect
      .poll(async () => Object.keys((await http.get(taskId)).inputRequests ?? {}).toSorted())
      .toEqual(["a", "b"]);
    await http.update(taskId, { b: ada });
    await http.update(taskId, { a: { action: "decline" } });
    const { result } = await http.until(taskId, "completed");
    expect(result?.structuredContent).toEqual({ a: { action: "decline" }, b: ada });
  });
});

test("a cancel withdraws what is open and ends the wait", async () => {
  const { tasks } = startTasks();
  const reasons: unknown[] = [];
  tasks.taskTool("ask", {}, async (_args, task) => {
    await task.requestInput({ who: askName }).catch((error: unknown) => {
      reasons.push(error);
      throw error as Error;
    });
    return text("never");
  });
  const http = new HttpDoor(tasks);
  const taskId = await http.startTask("ask");
  await http.until(taskId, "input_required");
  await http.cancel(taskId);
  await http.until(taskId, "cancelled");
  expect(reasons).toMatchObject([{ code: "cancelled" }]);
});
