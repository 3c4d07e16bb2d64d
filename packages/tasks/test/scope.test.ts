import { describe, expect, test } from "vitest";

import { errorOf, HttpDoor, type HttpCallOptions, type Reply } from "./support/http-door.ts";
import { recordText, startTasks, takeErrors } from "./support/started-tasks.ts";
import { gatedTool, greeter } from "./support/tools.ts";

function as(sub: string, iss = "https://id.example", clientId = "host"): HttpCallOptions {
  return { auth: { clientId, extra: { iss, sub } } };
}

const methods = ["tasks/get", "tasks/update", "tasks/cancel"] as const;

/** The error of a reply without what the caller sent itself. */
function normalised(reply: Reply, taskId: string): string {
  return JSON.stringify({ status: reply.httpStatus, ...errorOf(reply) }).replaceAll(taskId, "ID");
}

describe("P31: by default a task belongs to client, issuer and subject together", () => {
  test.for([
    ["another subject", as("eve")],
    ["another issuer", as("ada", "https://other.example")],
    ["another client", as("ada", "https://id.example", "other")],
  ] as const)("%s sees it byte for byte like an unknown one, and changes nothing", async ([, other]) => {
    const { tasks, store } = startTasks({ scope: undefined as never });
    greeter(tasks);
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("greet", {}, as("ada"));
    await http.until(taskId, "input_required", as("ada"));
    const before = await recordText(store, taskId);
    const unknown = "00000000-0000-4000-8000-000000000000";
    for (const method of methods) {
      const inputResponses = { who: { action: "decline" } };
      const foreign = await http.send(method, { taskId, inputResponses }, other);
      const missing = await http.send(method, { taskId: unknown, inputResponses }, other);
      expect(errorOf(foreign).code).toBe(-32_602);
      expect(normalised(foreign, taskId)).toBe(normalised(missing, unknown));
    }
    expect(await recordText(store, taskId)).toBe(before);
    await http.cancel(taskId, as("ada"));
    await http.until(taskId, "cancelled", as("ada"));
  });

  test("parts that run into each other are different people", async () => {
    const { tasks } = startTasks({ scope: undefined as never });
    gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("work", {}, as('a","b', "c"));
    expect(errorOf(await http.send("tasks/get", { taskId }, as("a", 'c","b'))).code).toBe(-32_602);
  });

  test("P35: a new connection of the same person has full access, another person on the same one has none", async () => {
    const { tasks } = startTasks({ scope: undefined as never });
    gatedTool(tasks, "work");
    const taskId = await new HttpDoor(tasks).startTask("work", {}, as("ada"));
    const later = new HttpDoor(tasks);
    expect((await later.get(taskId, as("ada"))).status).toBe("working");
    expect(errorOf(await later.send("tasks/get", { taskId }, as("eve"))).code).toBe(-32_602);
  });

  test("the handler is told whose call it is", async () => {
    const { tasks } = startTasks({ scope: undefined as never });
    const tool = gatedTool(tasks, "work");
    await new HttpDoor(tasks).startTask("work", {}, as("ada"));
    expect(tool.runs[0]?.scope).toBe('["https://id.example","ada","host"]');
  });

  test.for([
    ["no auth info", {}],
    ["no issuer", { auth: { clientId: "host", extra: { sub: "ada" } } }],
    ["no subject", { auth: { clientId: "host", extra: { iss: "https://id.example" } } }],
    ["an empty subject", as("")],
    ["a subject that is no text", { auth: { clientId: "host", extra: { iss: "i", sub: 7 } } }],
    ["the client id alone", { auth: { clientId: "host" } }],
  ] as const)("%s over HTTP is a configuration error that shows the fix", async ([, options]) => {
    const { tasks, store } = startTasks({ scope: undefined as never });
    const tool = gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    for (const [method, params] of [
      ["tools/call", { name: "work" }],
      ...methods.map((name) => [name, { taskId: "t", inputResponses: {} }] as const),
    ] as const) {
      const error = errorOf(await http.send(method, params, options));
      expect(error.code).toBe(-32_603);
      expect(error.message).toContain("createTasks({ scope: (request) => … })");
      expect(error.message).toContain("scope: null");
    }
    expect(tool.runs).toEqual([]);
    expect(store.calls).toEqual([]);
  });

  test("the token never goes into a record", async () => {
    const { tasks, store } = startTasks({ scope: undefined as never });
    gatedTool(tasks, "work");
    const taskId = await new HttpDoor(tasks).startTask("work", {}, as("ada"));
    expect(await recordText(store, taskId)).not.toContain("secret-token");
  });
});

describe("a scope function of the server's own", () => {
  test("is asked on every call, with the neutral request", async () => {
    const seen: unknown[] = [];
    const { tasks } = startTasks({
      scope: (request) => {
        seen.push(request);
        return request.headers?.["x-user"] ?? "nobody";
      },
    });
    gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    const ada = { headers: { "x-user": "ada" }, meta: { "org.example/trace": "t1" } };
    const taskId = await http.startTask("work", {}, ada);
    expect((await http.get(taskId, ada)).status).toBe("working");
    expect(errorOf(await http.send("tasks/get", { taskId })).code).toBe(-32_602);
    expect(seen).toHaveLength(3);
    expect(seen[0]).toMatchObject({ transport: "http", meta: { "org.example/trace": "t1" } });
    expect(seen[0]).toHaveProperty(["headers", "x-user"], "ada");
  });

  test.for([
    ["empty text", ""],
    ["undefined", undefined],
    ["null", null],
    ["a number", 7],
    ["empty text, later", Promise.resolve("")],
  ] as const)("that gives %s opens no shared bucket", async ([, given]) => {
    const { tasks, store } = startTasks({ scope: () => given as string });
    gatedTool(tasks, "work");
    const error = errorOf(await new HttpDoor(tasks).send("tools/call", { name: "work" }));
    expect(error).toMatchObject({ code: -32_603, message: expect.stringContaining("scope function") });
    expect(store.calls).toEqual([]);
  });

  test.for([
    ["an Error", new Error("ldap://10.0.0.7 is down")],
    ["undefined", undefined],
    [
      "a driver's error with a number",
      Object.assign(Object.create({ code: 14 }) as object, { message: "10.0.0.7" }),
    ],
  ] as const)("that throws %s is a fault of the server: reported, not told", async ([, thrown]) => {
    const started = startTasks({ scope: () => Promise.reject(thrown) });
    gatedTool(started.tasks, "work");
    const http = new HttpDoor(started.tasks);
    for (const reply of [
      await http.send("tools/call", { name: "work" }),
      await http.send("tasks/get", { taskId: "t" }),
    ]) {
      expect(errorOf(reply)).toEqual({ code: -32_603, message: "The server could not do this." });
    }
    expect(takeErrors(started)).toEqual([thrown, thrown]);
  });

  test("that throws a protocol error refuses the call with it", async () => {
    const { tasks } = startTasks({
      scope: () => Promise.reject(Object.assign(new Error("Sign in first"), { code: -32_001 })),
    });
    gatedTool(tasks, "work");
    const error = errorOf(await new HttpDoor(tasks).send("tools/call", { name: "work" }));
    expect(error).toEqual({ code: -32_001, message: "Sign in first" });
  });
});

test("scope: null shares every task with everyone", async () => {
  const { tasks } = startTasks({ scope: null });
  const tool = gatedTool(tasks, "work");
  const http = new HttpDoor(tasks);
  const taskId = await http.startTask("work", {}, as("ada"));
  expect((await http.get(taskId, as("eve"))).status).toBe("working");
  expect((await http.get(taskId)).status).toBe("working");
  expect(tool.runs[0]?.scope).toBeUndefined();
});

test("equal or nothing: a task without a scope is not for callers with one", async () => {
  const { tasks: shared, store } = startTasks({ scope: null });
  gatedTool(shared, "work");
  const taskId = await new HttpDoor(shared).startTask("work");
  const { tasks: owned } = startTasks({ store: store.inner, scope: () => "ada" });
  expect(errorOf(await new HttpDoor(owned).send("tasks/get", { taskId })).code).toBe(-32_602);
});

test("a record that is no task looks unknown", async () => {
  const { tasks, store } = startTasks();
  const now = new Date().toISOString();
  const times = { createdAt: now, lastUpdatedAt: now, ttlMs: null, retentionMs: null };
  await store.inner.create({
    taskId: "file1",
    version: 1,
    status: "working",
    attempt: 1,
    crashes: 0,
    kind: "transfer",
    ...times,
  });
  const before = await recordText(store, "file1");
  const http = new HttpDoor(tasks);
  for (const method of methods) {
    const foreign = await http.send(method, { taskId: "file1", inputResponses: {} });
    const missing = await http.send(method, { taskId: "file2", inputResponses: {} });
    expect(normalised(foreign, "file1")).toBe(normalised(missing, "file2"));
  }
  expect(await recordText(store, "file1")).toBe(before);
});
