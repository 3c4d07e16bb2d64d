import { describe, expect, test } from "vitest";

import { errorOf, HttpDoor, resultOf, type Reply } from "./support/http-door.ts";
import { recordText, startTasks } from "./support/started-tasks.ts";
import { echoTool, gatedTool, greeter, text } from "./support/tools.ts";

const missing = { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } };

describe("P05: a request counts for itself", () => {
  test("a client that declared the extension on call 1 only gets no handle for call 2", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" });
    const http = new HttpDoor(tasks);
    await http.startTask("work");
    const second = http.callTool("work", {}, { declare: false });
    await expect.poll(() => tool.runs.length).toBe(2);
    tool.gate.open();
    expect((await second).content).toEqual([{ type: "text", text: "done" }]);
  });

  test.for([
    ["null", null],
    ["text", "io.modelcontextprotocol/tasks"],
    ["another extension", { "org.example/tasks": {} }],
    ["an inherited name", { toString: {} }],
  ])("extensions that are %s declare nothing", async ([, extensions]) => {
    const { tasks, store } = startTasks();
    const http = new HttpDoor(tasks);
    const reply = await http.send(
      "tasks/get",
      { taskId: "t" },
      { declare: false, capabilities: { extensions } },
    );
    expect(errorOf(reply).code).toBeLessThan(0);
    expect(store.calls).toEqual([]);
  });

  test.for(["tasks/get", "tasks/update", "tasks/cancel"])(
    "%s without the declaration is -32021 and touches nothing",
    async (method) => {
      const { tasks, store } = startTasks();
      greeter(tasks);
      const http = new HttpDoor(tasks);
      const taskId = await http.startTask("greet");
      await http.until(taskId, "input_required");
      const before = await recordText(store, taskId);
      const calls = store.calls.length;
      const inputResponses = { who: { action: "accept", content: { name: "Eve" } } };
      const reply = await http.send(method, { taskId, inputResponses }, { declare: false });
      expect(reply.httpStatus).toBe(400);
      expect(errorOf(reply)).toMatchObject({ code: -32_021, data: missing });
      expect(await recordText(store, taskId)).toBe(before);
      expect(store.calls).toHaveLength(calls);
    },
  );

  test("without the declaration an unknown id, a hostile id and a known one look the same", async () => {
    const { tasks } = startTasks();
    gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    const known = await http.startTask("work");
    const replies: Reply[] = [];
    for (const taskId of [known, "unknown", "../x"]) {
      replies.push(await http.send("tasks/get", { taskId }, { declare: false }));
    }
    const errors = replies.map(errorOf);
    expect(errors[1]).toEqual(errors[0]);
    expect(errors[2]).toEqual(errors[0]);
  });

  test("a tool that requires tasks is -32021 for a client without them: no handler, no record", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { taskSupport: "required" });
    const reply = await new HttpDoor(tasks).send("tools/call", { name: "work" }, { declare: false });
    expect(reply.httpStatus).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32_021, data: missing });
    expect(tool.runs).toEqual([]);
    expect(store.calls).toEqual([]);
  });

  test("the task hint of 2025-11-25 is ignored", async () => {
    const { tasks, store } = startTasks();
    echoTool(tasks, "echo", { inlineBudgetMs: 0, fallback: "wait" });
    const http = new HttpDoor(tasks);
    const params = { name: "echo", arguments: { words: "hi" }, task: { ttl: 60_000 } };
    const plain = resultOf(await http.send("tools/call", params, { declare: false }));
    expect(plain).toMatchObject({ resultType: "complete", content: [{ type: "text", text: "hi" }] });
    expect(store.calls).toEqual([]);
    const handle = resultOf(await http.send("tools/call", params));
    expect(handle).toMatchObject({ resultType: "task", ttlMs: 86_400_000 });
  });
});

describe("a client of 2025-11-25", () => {
  test.for(["tasks/update", "tasks/list"])("gets -32601 for %s, and no store call", async (method) => {
    const { tasks, store } = startTasks();
    const reply = await new HttpDoor(tasks).sendLegacy(method, { taskId: "t", inputResponses: {} });
    expect(errorOf(reply).code).toBe(-32_601);
    expect(store.calls).toEqual([]);
  });

  test("gets -32601 for a tool that requires tasks", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { taskSupport: "required" });
    const reply = await new HttpDoor(tasks).sendLegacy("tools/call", { name: "work", arguments: {} });
    expect(errorOf(reply).code).toBe(-32_601);
    expect(tool.runs).toEqual([]);
  });

  test('waits for the result of a tool with fallback "wait", however long it takes', async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" });
    const answer = new HttpDoor(tasks).sendLegacy("tools/call", { name: "work", arguments: {} });
    await expect.poll(() => tool.runs.length).toBe(1);
    tool.gate.open();
    expect(resultOf(await answer)).toEqual({ ...text("done") });
    expect(store.calls).toEqual([]);
  });

  test("declares nothing by an envelope of its own making", async () => {
    const { tasks, store } = startTasks();
    gatedTool(tasks, "work", { inlineBudgetMs: 0, fallback: "wait" }).gate.open();
    const _meta = {
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
    };
    const reply = await new HttpDoor(tasks).sendLegacy("tools/call", { name: "work", arguments: {}, _meta });
    expect(resultOf(reply).content).toEqual([{ type: "text", text: "done" }]);
    expect(store.calls).toEqual([]);
  });
});

test("tasks/list and tasks/result do not exist", async () => {
  const { tasks } = startTasks();
  const http = new HttpDoor(tasks);
  for (const method of ["tasks/list", "tasks/result"]) {
    expect(errorOf(await http.send(method, { taskId: "t" })).code).toBe(-32_601);
  }
});
