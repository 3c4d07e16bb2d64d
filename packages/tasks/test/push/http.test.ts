import { MemoryTaskStore } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { EventSubscriber } from "../support/event-subscriber.ts";
import { deepValue, modernFrame } from "../support/frames.ts";
import { errorOf, HttpDoor, type HttpCallOptions } from "../support/http-door.ts";
import { hostileIds } from "../support/hostile-ids.ts";
import { startTasks } from "../support/started-tasks.ts";
import { askName, gatedTool, greeter, text } from "../support/tools.ts";
import { nextTurn } from "../support/turns.ts";

const nobody = "00000000-0000-4000-8000-000000000000";

function open(options: Parameters<typeof startTasks>[0] = {}) {
  const started = startTasks({ progressIntervalMs: 0, ...options });
  return { ...started, http: new HttpDoor(started.tasks, { push: true }) };
}

/** Long enough for what comes every 5 ms. */
async function quietTurns(): Promise<void> {
  const from = performance.now();
  while (performance.now() - from < 30) await nextTurn();
}

/** What `tasks/get` answers, as a notification shows it. */
async function shown(http: HttpDoor, taskId: string, options?: HttpCallOptions): Promise<object> {
  const { resultType, _meta, ...task } = (await http.get(taskId, options)) as { _meta?: unknown } & object & {
      resultType?: string;
    };
  expect(resultType).toBe("complete");
  return task;
}

describe("subscriptions/listen with taskIds", () => {
  test("acknowledges the task, then tells it as it is and each change, exactly as tasks/get answers", async () => {
    const { tasks, http } = open();
    greeter(tasks, "greet", { inlineBudgetMs: 0 });
    const taskId = await http.startTask("greet");
    await http.until(taskId, "input_required");
    const stream = await http.listen({ taskIds: [taskId] });
    expect(stream.response.status).toBe(200);
    expect(stream.response.headers.get("x-accel-buffering")).toBe("no");
    expect(await stream.acknowledged()).toEqual([taskId]);
    const asked = await stream.task();
    expect(asked).toEqual(await shown(http, taskId));
    expect(asked["inputRequests"]).toEqual({ who: askName });
    await http.update(taskId, { who: { action: "accept", content: { name: "Ada" } } });
    const done = await stream.until("completed");
    expect(done).toEqual(await shown(http, taskId));
    expect(done["result"]).toMatchObject({ resultType: "complete", structuredContent: { who: {} } });
    await stream.ended();
  });

  test("a task that has ended already is told once, and what failed with its error", async () => {
    const { tasks, http } = open();
    const tool = gatedTool(tasks, "work");
    tasks.taskTool("refuse", { inlineBudgetMs: 0 }, () => {
      throw Object.assign(new Error("Not today"), { code: -32_050, data: { n: 1 } });
    });
    tool.gate.open();
    const [done, failed] = [await http.startTask("work"), await http.startTask("refuse")];
    await http.until(done, "completed");
    await http.until(failed, "failed");
    const stream = await http.listen({ taskIds: [failed, done] });
    expect(await stream.acknowledged()).toEqual([failed, done]);
    expect(await stream.task()).toEqual(await shown(http, failed));
    expect(await stream.task()).toEqual(await shown(http, done));
    expect(tasks.stats().watchedTasks, "an ended task is not watched").toBe(0);
    await stream.ended();
  });

  test("unknown and hostile ids are absent from the acknowledgement, and an empty list is one", async () => {
    const { tasks, http, store } = open();
    const tool = gatedTool(tasks, "work");
    const taskId = await http.startTask("work");
    const texts = hostileIds.map(([, id]) => id).filter((id) => typeof id === "string" && id !== deepValue);
    store.calls.length = 0;
    const stream = await http.listen({ taskIds: [...texts, taskId, nobody, taskId] });
    expect(await stream.acknowledged()).toEqual([taskId]);
    expect(new Set(store.calls.map((call) => call.taskId))).toEqual(new Set([taskId, nobody]));
    const none = await http.listen({ taskIds: [nobody] });
    expect(await none.acknowledged()).toEqual([]);
    const empty = await http.listen({ taskIds: [] });
    expect(await empty.acknowledged()).toEqual([]);
    tool.gate.open();
    await stream.until("completed");
    for (const one of [stream, none, empty]) await one.ended();
  });

  test("a request that does not declare the extension gets -32021 and HTTP 400, and nothing is read", async () => {
    const { http, store } = open();
    const refused = await http.listen({ taskIds: [nobody] }, { declare: false });
    expect(refused.response.status).toBe(400);
    expect((await refused.next())?.error).toMatchObject({
      code: -32_021,
      data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
    });
    expect(store.calls).toEqual([]);
  });

  test.for([["a text"], [[1]], [[null]], [null], [{}]])("taskIds as %j is -32602", async ([taskIds]) => {
    const { http, store } = open();
    const refused = await http.listen({ taskIds });
    expect(refused.response.status).toBe(200);
    expect((await refused.next())?.error?.code).toBe(-32_602);
    expect(store.calls).toEqual([]);
  });

  test("too many tasks and too many subscriptions are refused with codes; a closed one makes room", async () => {
    const { tasks, http } = open({
      push: { maxTaskIds: 2, maxSubscriptionsPerClient: 2 },
      scope: () => "ada",
    });
    gatedTool(tasks, "work");
    const taskIds = [await http.startTask("work")];
    const many = await http.listen({ taskIds: ["a", "b", "c"] });
    expect((await many.next())?.error).toMatchObject({
      code: -32_602,
      data: {
        code: "invalid_request",
        param: "notifications.taskIds",
        recoveryHint: expect.stringContaining("at most 2"),
      },
    });
    const [first, second] = [await http.listen({ taskIds }), await http.listen({ taskIds })];
    const third = await http.listen({ taskIds });
    expect((await third.next())?.error).toMatchObject({
      code: -32_603,
      data: { code: "quota_exceeded", retryable: true },
    });
    await first.close();
    const again = await http.listen({ taskIds });
    expect(await again.acknowledged()).toEqual(taskIds);
    await Promise.all([second.close(), again.close()]);
  });

  test("users are counted apart, and where everyone shares only all together", async () => {
    const as = (sub: string) => ({ auth: { clientId: "host", extra: { iss: "i", sub } } });
    const limits = { maxSubscriptions: 3, maxSubscriptionsPerClient: 1 };
    const personal = open({ push: limits, scope: undefined as never });
    gatedTool(personal.tasks, "work");
    const hers = { taskIds: [await personal.http.startTask("work", {}, as("ada"))] };
    const his = { taskIds: [await personal.http.startTask("work", {}, as("eve"))] };
    const ada = await personal.http.listen(hers, as("ada"));
    const eve = await personal.http.listen(his, as("eve"));
    expect([await ada.acknowledged(), await eve.acknowledged()]).toEqual([hers.taskIds, his.taskIds]);
    const more = await personal.http.listen(hers, as("ada"));
    expect((await more.next())?.error?.data).toMatchObject({ code: "quota_exceeded" });
    const shared = open({ push: limits });
    gatedTool(shared.tasks, "work");
    const anyones = { taskIds: [await shared.http.startTask("work")] };
    const streams = await Promise.all([1, 2, 3].map(() => shared.http.listen(anyones)));
    for (const stream of streams) expect(await stream.acknowledged()).toEqual(anyones.taskIds);
    const fourth = await shared.http.listen(anyones);
    expect((await fourth.next())?.error?.data).toMatchObject({ code: "quota_exceeded" });
    await Promise.all([ada, eve, ...streams].map((stream) => stream.close()));
  });

  test("a caller without identity is refused as by tasks/get", async () => {
    const started = open({ scope: undefined as never });
    const refused = await started.http.listen({ taskIds: [nobody] });
    const asked = await started.http.send("tasks/get", { taskId: nobody });
    expect((await refused.next())?.error).toEqual(errorOf(asked));
    expect(started.store.calls).toEqual([]);
  });

  test("a store that is away refuses with a code that can be tried again", async () => {
    const started = open();
    started.store.before = () => {
      throw new Error("connection lost");
    };
    const refused = await started.http.listen({ taskIds: [nobody] });
    expect((await refused.next())?.error).toEqual({
      code: -32_603,
      message: "The server could not do this.",
    });
    expect(started.errors.splice(0)).toHaveLength(1);
    started.store.before = () => undefined;
    const stream = await started.http.listen({ taskIds: [nobody] });
    expect(await stream.acknowledged()).toEqual([]);
    await stream.ended();
  });
});

describe("two users", () => {
  const as = (sub: string) => ({ auth: { clientId: "host", extra: { iss: "i", sub } } });

  test("a foreign id is absent like an unknown one, byte for byte, with as many looks at the store", async () => {
    const { tasks, http, store } = open({ scope: undefined as never });
    const tool = gatedTool(tasks, "work");
    const [hers, his] = [
      await http.startTask("work", {}, as("ada")),
      await http.startTask("work", {}, as("eve")),
    ];
    const answers: string[] = [];
    for (const id of [hers, nobody]) {
      store.calls.length = 0;
      const stream = await http.listen({ taskIds: [id] }, as("eve"));
      const first = await stream.next();
      answers.push(JSON.stringify(first).replaceAll(`:${stream.id}`, ":ID") + store.calls.length);
      await stream.close();
    }
    expect(answers[0]).toBe(answers[1]);
    const both = await http.listen({ taskIds: [hers, his] }, as("eve"));
    expect(await both.acknowledged()).toEqual([his]);
    expect(await both.task()).toEqual(await shown(http, his, as("eve")));
    await http.cancel(hers, as("ada"));
    await http.until(hers, "cancelled", as("ada"));
    tool.gate.open();
    expect(await both.until("completed")).toMatchObject({ taskId: his });
    await both.ended();
  });
});

describe("beside the SDK's own subscriptions", () => {
  test("a request that names both gets both on one stream, acknowledged at once", async () => {
    const { tasks, http } = open();
    const tool = gatedTool(tasks, "work");
    const taskId = await http.startTask("work");
    const stream = await http.listen({ toolsListChanged: true, promptsListChanged: true, taskIds: [taskId] });
    const first = await stream.next();
    expect(first?.params?.["notifications"]).toEqual({ toolsListChanged: true, taskIds: [taskId] });
    expect(await stream.task()).toMatchObject({ status: "working" });
    http.handler.notify.toolsChanged();
    expect(await stream.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    tool.gate.open();
    expect(await stream.until("completed")).toMatchObject({ taskId });
    http.handler.notify.toolsChanged();
    expect(await stream.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await stream.close();
  });

  test("a request that names no tasks is the SDK's: it may leave the extension undeclared, and reads no store", async () => {
    const { http, store } = open();
    const stream = await http.listen({ toolsListChanged: true }, { declare: false });
    const first = await stream.next();
    expect(first?.params?.["notifications"]).toEqual({ toolsListChanged: true });
    http.handler.notify.toolsChanged();
    expect(await stream.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await stream.close();
    const bad = await http.listen("everything");
    expect((await bad.next())?.error?.code).toBe(-32_602);
    expect(store.calls).toEqual([]);
  });

  test("what the SDK refuses is refused as without us", async () => {
    const { tasks, http } = open();
    const plain = new HttpDoor(tasks);
    const answers = async (door: HttpDoor): Promise<unknown[]> => {
      const noHeader = await door.listen({ taskIds: [] }, { headers: { "mcp-method": "tools/list" } });
      const noVersion = await door.listen(
        { taskIds: [] },
        { headers: { "mcp-protocol-version": "2025-06-18" } },
      );
      const old = await door.sendLegacy("subscriptions/listen", { notifications: { taskIds: [] } });
      const told = [noHeader, noVersion].map(async (one) => [
        one.response.status,
        (await one.next())?.error?.code,
      ]);
      return [...(await Promise.all(told)), errorOf(old).code];
    };
    expect(await answers(http)).toEqual(await answers(plain));
  });

  test("the SDK's limit holds, and what we refuse gives its place back", async () => {
    const { tasks } = startTasks();
    const http = new HttpDoor(tasks, { push: true, handlerOptions: { maxSubscriptions: 1 } });
    for (let refused = 0; refused < 3; refused += 1) {
      const bad = await http.listen({ toolsListChanged: true, taskIds: "all" });
      expect((await bad.next())?.error?.code).toBe(-32_602);
    }
    const both = { toolsListChanged: true, taskIds: [] };
    const one = await http.listen(both);
    expect(await one.acknowledged()).toEqual([]);
    expect((await (await http.listen(both)).next())?.error?.code).toBe(-32_603);
    await one.close();
    const next = await http.listen(both);
    expect(await next.acknowledged()).toEqual([]);
    await next.close();
  });

  test("a stream that is quiet shows that it is alive, by the SDK's option or by ours", async () => {
    const { tasks } = startTasks({ push: { keepAliveMs: 5 } });
    const { tasks: silent } = startTasks({ push: { keepAliveMs: null } });
    for (const [owner, filter, handlerOptions, alive] of [
      [tasks, {}, { keepAliveMs: 0 }, true],
      [tasks, { toolsListChanged: true }, { keepAliveMs: 0 }, false],
      [silent, { toolsListChanged: true }, { keepAliveMs: 5 }, true],
      [silent, {}, { keepAliveMs: 5 }, false],
    ] as const) {
      const name = "toolsListChanged" in filter ? "beside" : "alone";
      const tool = gatedTool(owner, name);
      const http = new HttpDoor(owner, { push: true, handlerOptions });
      const taskId = await http.startTask(name);
      const stream = await http.listen({ ...filter, taskIds: [taskId] });
      expect(await stream.acknowledged()).toEqual([taskId]);
      await stream.task();
      const next = stream.next();
      if (alive) await expect.poll(() => stream.comments).toBeGreaterThan(2);
      else await quietTurns();
      expect(stream.comments > 0).toBe(alive);
      tool.gate.open();
      expect((await next)?.params).toMatchObject({ status: "completed" });
      await stream.close();
    }
  });

  test("with the SDK's part a stream stays open after the last task", async () => {
    const { tasks, http } = open();
    gatedTool(tasks, "work").gate.open();
    const taskId = await http.startTask("work");
    const stream = await http.listen({ toolsListChanged: true, taskIds: [taskId] });
    expect(await stream.acknowledged()).toEqual([taskId]);
    await stream.until("completed");
    http.handler.notify.toolsChanged();
    expect(await stream.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await stream.close();
  });

  test("a handler without push drops taskIds, and everything else is as before", async () => {
    const { tasks } = startTasks();
    const http = new HttpDoor(tasks);
    const stream = await http.listen({ taskIds: [nobody] });
    expect(await stream.acknowledged()).toBeUndefined();
    await stream.close();
  });

  test("a body that was parsed before, as behind express, is used", async () => {
    const { tasks, http } = open();
    gatedTool(tasks, "work").gate.open();
    const taskId = await http.startTask("work");
    await http.until(taskId, "completed");
    const frame = modernFrame("subscriptions/listen", { notifications: { taskIds: [taskId] } });
    const headers = {
      "mcp-method": frame.method,
      "mcp-protocol-version": "2026-07-28",
      "content-type": "application/json",
    };
    const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: "" });
    const response = await http.handler.fetch(request, { parsedBody: frame });
    const stream = new EventSubscriber(frame.id, response);
    expect(await stream.acknowledged()).toEqual([taskId]);
    expect(await stream.task()).toMatchObject({ status: "completed", result: text("done") });
    await stream.ended();
  });
});

test("wrapHandler takes a handler of the SDK v2 and nothing else", () => {
  const { tasks } = startTasks({ store: new MemoryTaskStore() });
  const anyHandler = tasks.wrapHandler.bind(tasks) as (handler: unknown) => unknown;
  for (const wrong of [
    undefined,
    null,
    {},
    { fetch: () => undefined },
    () => undefined,
    { handleRequest: () => undefined },
  ])
    expect(() => anyHandler(wrong)).toThrow(TypeError);
});
