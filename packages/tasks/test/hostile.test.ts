import { describe, expect, test } from "vitest";
import { z } from "zod";

import { deepValue, modernFrame } from "./support/frames.ts";
import { hostileIds } from "./support/hostile-ids.ts";
import { errorOf, HttpDoor } from "./support/http-door.ts";
import { recordText, startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { gatedTool, greeter, text } from "./support/tools.ts";

describe("P33: a hostile id is -32602 on every entry point, and reaches no store", () => {
  test.for(hostileIds)("%s", async ([, taskId]) => {
    const { tasks, store } = startTasks();
    const http = new HttpDoor(tasks);
    const stdio = await StdioDoor.serve(tasks);
    const params = { taskId, inputResponses: { who: { action: "decline" } } };
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const overStdio = await stdio.send(method, params);
      expect(overStdio.error?.code).toBe(-32_602);
      // A header cannot hold every id: then the SDK refuses the call before we see it.
      const overHttp = errorOf(await http.send(method, params));
      expect([-32_602, -32_020]).toContain(overHttp.code);
      expect(overHttp.message.length).toBeLessThan(400);
    }
    expect(store.calls).toEqual([]);
  });

  test("names that every object has are ids like any other", async () => {
    const { tasks } = startTasks();
    const http = new HttpDoor(tasks);
    for (const taskId of ["constructor", "toString", "hasOwnProperty"]) {
      expect(errorOf(await http.send("tasks/get", { taskId })).code).toBe(-32_602);
    }
  });
});

describe("input that cannot be served is a coded error; the server lives and no record changes", () => {
  async function server() {
    const started = startTasks();
    greeter(started.tasks);
    started.tasks.taskTool("any", { inputSchema: z.object({ value: z.unknown() }), inlineBudgetMs: 0 }, () =>
      text("no"),
    );
    gatedTool(started.tasks, "bare");
    const http = new HttpDoor(started.tasks);
    const taskId = await http.startTask("greet");
    await http.until(taskId, "input_required");
    const before = await recordText(started.store, taskId);
    const created = started.store.calls.length;
    return {
      http,
      taskId,
      stillAsBefore: async () => {
        expect(await recordText(started.store, taskId)).toBe(before);
        expect(started.store.calls.slice(created).filter(({ method }) => method !== "get")).toEqual([]);
        expect((await http.get(taskId)).status).toBe("input_required");
      },
    };
  }

  test.for([
    ["no JSON", "{x"],
    ["nothing", ""],
    ["a number", "7"],
    ["null", "null"],
    ["a list of nothing", "[]"],
    ["no method", '{"jsonrpc":"2.0","id":1}'],
    ["a method that is no text", '{"jsonrpc":"2.0","id":1,"method":7}'],
    ["params that are a list", '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}'],
    ["an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"tasks/get","params":{}}'],
    ["an unclosed string", '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"'],
  ] as const)("a body that is %s", async ([, body]) => {
    const { http, stillAsBefore } = await server();
    expect(errorOf(await http.sendRaw("tasks/get", {}, body)).code).toBeLessThan(0);
    await stillAsBefore();
  });

  test("an unknown method, and one of the extension that does not exist", async () => {
    const { http, stillAsBefore } = await server();
    for (const method of ["tasks/delete", "tasks/", "longjobs/secret", "constructor"]) {
      expect(errorOf(await http.send(method, { taskId: "t" })).code).toBe(-32_601);
    }
    await stillAsBefore();
  });

  test.for([
    ["inputResponses missing", undefined, -32_602],
    ["a deep answer", { who: { action: "accept", content: { name: deepValue } } }, -32_602],
    ["a deep answer to nobody", { nobody: { action: "accept", content: deepValue } }, -32_602],
  ] as const)("tasks/update with %s", async ([, inputResponses, code]) => {
    const { http, taskId, stillAsBefore } = await server();
    expect(errorOf(await http.send("tasks/update", { taskId, inputResponses })).code).toBe(code);
    await stillAsBefore();
  });

  test.for([
    ["text", "all"],
    ["a list", [{ action: "accept" }]],
    ["null", null],
    ["a key that is __proto__", JSON.parse('{"__proto__":{"action":"accept","content":{"name":"Eve"}}}')],
    ["keys that every object has", { constructor: { action: "accept" }, toString: { action: "accept" } }],
    [
      "a thousand unknown keys",
      Object.fromEntries(Array.from({ length: 1_000 }, (_unused, n) => [`k${n}`, {}])),
    ],
  ] as const)("tasks/update with inputResponses that are %s changes nothing", async ([, inputResponses]) => {
    const { http, taskId, stillAsBefore } = await server();
    const { message } = await http.send("tasks/update", { taskId, inputResponses });
    expect(message.error?.code ?? -32_602).toBe(-32_602);
    await stillAsBefore();
  });

  test.for([
    ["deep arguments", { name: "any", arguments: { value: deepValue } }],
    ["deep arguments of a tool that takes none", { name: "bare", arguments: { value: deepValue } }],
    ["arguments that are text", { name: "any", arguments: "all" }],
    ["arguments that are a list", { name: "any", arguments: [1] }],
    ["no name", { arguments: {} }],
    ["a name that is no text", { name: 7 }],
    ["an unknown tool", { name: "constructor" }],
    ["a deep requestState", { name: "any", requestState: deepValue }],
  ] as const)("tools/call with %s", async ([, params]) => {
    const { http, stillAsBefore } = await server();
    const { message } = await http.send("tools/call", params);
    if (message.error === undefined) expect(message.result?.isError).toBe(true);
    else expect(message.error.code).toBeLessThan(0);
    await stillAsBefore();
  });

  test.for([
    ["text", "all"],
    ["a list", []],
    ["missing", undefined],
  ] as const)("client capabilities that are %s declare nothing", async ([, capabilities]) => {
    const { http, taskId, stillAsBefore } = await server();
    const frame = modernFrame("tasks/cancel", { taskId });
    Object.assign(frame.params._meta, { "io.modelcontextprotocol/clientCapabilities": capabilities });
    const reply = await http.sendRaw("tasks/cancel", { taskId }, JSON.stringify(frame));
    expect([-32_021, -32_602]).toContain(errorOf(reply).code);
    await stillAsBefore();
  });

  test("deep client capabilities make no task", async () => {
    const { http, stillAsBefore } = await server();
    const { message } = await http.send(
      "tools/call",
      { name: "bare" },
      { capabilities: { elicitation: deepValue } },
    );
    expect(message.error?.code).toBeLessThan(0);
    await stillAsBefore();
  });

  test("an id that is another task's header is refused by the SDK, before anything is read", async () => {
    const { http, taskId, stillAsBefore } = await server();
    const reply = await http.send("tasks/cancel", { taskId }, { headers: { "mcp-name": "other" } });
    expect(errorOf(reply).code).toBe(-32_020);
    await stillAsBefore();
  });
});

test("arguments over the size limit make no task and are the client's fault", async () => {
  const { tasks, store } = startTasks({ jsonLimits: { maxBytes: 1_000 } });
  tasks.taskTool("any", { inputSchema: z.object({ value: z.string() }), inlineBudgetMs: 0 }, () =>
    text("no"),
  );
  const params = { name: "any", arguments: { value: "x".repeat(2_000) } };
  const error = errorOf(await new HttpDoor(tasks).send("tools/call", params));
  expect(error).toMatchObject({ code: -32_602, data: { code: "record_too_large" } });
  expect(store.calls).toEqual([]);
});
