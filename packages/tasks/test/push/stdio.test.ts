import { MemoryTaskStore } from "@longjobs/core";
import { Client } from "@modelcontextprotocol/client";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { InMemoryTransport as InMemoryTransportV1 } from "@modelcontextprotocol/sdk/inMemory.js";
import {
  InMemoryTransport,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { describe, expect, test } from "vitest";

import { WatchableSpyStore } from "../support/spy-store.ts";
import { startTasks } from "../support/started-tasks.ts";
import { StdioDoor } from "../support/stdio-door.ts";
import { gatedTool } from "../support/tools.ts";
import { gate, nextTurn } from "../support/turns.ts";
import { assertSubscribed, type WireMessage, type WireResult } from "../support/wire.ts";

const nobody = "00000000-0000-4000-8000-000000000000";

async function open(options: Parameters<typeof startTasks>[0] = {}, extend?: (mcp: McpServer) => void) {
  const started = startTasks({ progressIntervalMs: 0, ...options });
  const tool = gatedTool(started.tasks, "work");
  const door = await StdioDoor.serve(started.tasks, {
    push: true,
    ...(extend === undefined ? {} : { extend }),
  });
  const startTask = async (): Promise<string> =>
    (await door.send("tools/call", { name: "work", arguments: {} })).result?.taskId ?? "";
  /** The messages of a subscription, when there are as many. */
  const told = async (id: number, count: number): Promise<readonly WireMessage[]> => {
    const mine = () => door.subscribed.filter((message) => idOf(message) === id);
    await expect.poll(() => mine().length).toBeGreaterThanOrEqual(count);
    for (const message of mine())
      if (message.method !== "notifications/cancelled" && message.error === undefined)
        assertSubscribed(message, id);
    return mine();
  };
  return { ...started, tool, door, startTask, told };
}

function idOf({ id, params }: WireMessage): unknown {
  const meta = params?.["_meta"] as { readonly [key: string]: unknown } | undefined;
  return id ?? params?.["requestId"] ?? meta?.["io.modelcontextprotocol/subscriptionId"];
}

/** A notification as one word. */
function gist({ error, method, params, result }: WireMessage): unknown {
  if (error !== undefined) return error.code;
  if (result !== undefined) return result.resultType;
  return params?.["status"] ?? method?.replace("notifications/", "");
}

describe("subscriptions/listen with taskIds over stdio", () => {
  test("acknowledges, tells each state as tasks/get answers, and completes with the last task", async () => {
    const { door, tool, startTask, told } = await open();
    const [first, second] = [await startTask(), await startTask()];
    const id = await door.listen({ taskIds: [first, nobody, second, "../x"] });
    const [acknowledged, ...states] = await told(id, 3);
    expect(acknowledged?.params?.["notifications"]).toEqual({ taskIds: [first, second] });
    for (const [index, taskId] of [first, second].entries()) {
      const { _meta, ...task } = states[index]?.params ?? {};
      const { result } = await door.send("tasks/get", { taskId });
      const {
        resultType: _type,
        _meta: _own,
        ...asked
      } = result as WireResult & { readonly _meta?: unknown };
      expect(task).toEqual(asked);
    }
    tool.gate.open();
    const all = (await told(id, 6)).map(gist);
    expect(all).toEqual([
      "subscriptions/acknowledged",
      "working",
      "working",
      "completed",
      "completed",
      "complete",
    ]);
  });

  test("two subscriptions on one connection are told apart; one that is cancelled is told nothing more", async () => {
    const { door, tasks, tool, startTask, told } = await open();
    const taskId = await startTask();
    const [one, two] = [await door.listen({ taskIds: [taskId] }), await door.listen({ taskIds: [taskId] })];
    await told(one, 2);
    await told(two, 2);
    await door.cancel(one);
    await door.send("tasks/get", { taskId });
    const { watchedTasks } = tasks.stats();
    tool.gate.open();
    expect((await told(two, 4)).map(gist)).toEqual([
      "subscriptions/acknowledged",
      "working",
      "completed",
      "complete",
    ]);
    expect((await told(one, 2)).map(gist)).toEqual(["subscriptions/acknowledged", "working"]);
    expect(watchedTasks).toBe(1);
  });

  test("is refused without the extension, for a wrong list, and over the limits; the connection goes on", async () => {
    const { door, store, startTask, told } = await open({
      push: { maxTaskIds: 2, maxSubscriptionsPerClient: 1 },
    });
    const refusal = async (notifications: unknown, declare = true): Promise<WireMessage["error"]> =>
      (await told(await door.listen(notifications, { declare }), 1))[0]?.error;
    expect(await refusal({ taskIds: [nobody] }, false)).toMatchObject({ code: -32_021 });
    expect(await refusal({ taskIds: [7] })).toMatchObject({ code: -32_602 });
    expect(await refusal({ taskIds: ["a", "b", "c"] })).toMatchObject({ data: { code: "invalid_request" } });
    expect(store.calls).toEqual([]);
    const taskId = await startTask();
    const id = await door.listen({ taskIds: [taskId] });
    await told(id, 2);
    expect(await refusal({ taskIds: [taskId] })).toMatchObject({ data: { code: "quota_exceeded" } });
    await door.cancel(id);
    await told(await door.listen({ taskIds: [taskId] }), 2);
  });

  test("a request that names both gets both, and one without tasks is the SDK's", async () => {
    let mcp: McpServer | undefined;
    const { door, tool, startTask, told } = await open({}, (made) => {
      mcp = made;
    });
    const taskId = await startTask();
    const both = await door.listen({ toolsListChanged: true, taskIds: [taskId] });
    const theirs = await door.listen({ toolsListChanged: true }, { declare: false });
    const [first] = await told(both, 2);
    expect(first?.params?.["notifications"]).toEqual({ toolsListChanged: true, taskIds: [taskId] });
    expect((await told(theirs, 1))[0]?.params?.["notifications"]).toEqual({ toolsListChanged: true });
    mcp?.sendToolListChanged();
    await told(both, 3);
    tool.gate.open();
    await told(both, 4);
    mcp?.sendToolListChanged();
    expect((await told(both, 5)).map(gist)).toEqual([
      "subscriptions/acknowledged",
      "working",
      "tools/list_changed",
      "completed",
      "tools/list_changed",
    ]);
    expect((await told(theirs, 3)).map(gist)).toEqual([
      "subscriptions/acknowledged",
      "tools/list_changed",
      "tools/list_changed",
    ]);
  });

  test("nothing comes before the acknowledgement, also while a store is slow, and other requests are answered", async () => {
    let mcp: McpServer | undefined;
    const { door, store, startTask, told } = await open({}, (made) => {
      mcp = made;
    });
    const taskId = await startTask();
    const reading = gate();
    store.before = () => reading.opened;
    const id = await door.listen({ toolsListChanged: true, taskIds: [taskId] });
    const gone = await door.listen({ toolsListChanged: true, taskIds: [taskId] });
    expect((await door.send("tools/list")).result).toBeDefined();
    mcp?.sendToolListChanged();
    await door.cancel(gone);
    await door.send("tools/list");
    expect(door.subscribed).toEqual([]);
    reading.open();
    expect(new Set((await told(id, 3)).map(gist))).toEqual(
      new Set(["subscriptions/acknowledged", "tools/list_changed", "working"]),
    );
    expect(gist((await told(id, 3))[0] as WireMessage)).toBe("subscriptions/acknowledged");
    expect(await told(gone, 0)).toEqual([]);
  });

  test("a subscription that is cancelled while a state is read for it is not told that state", async () => {
    const shared = new MemoryTaskStore();
    const there = startTasks({ store: shared });
    const { taskId } = await there.tasks.lifecycle.createTask();
    const store = new WatchableSpyStore(shared);
    const { door, told } = await open({ store, waitPollMs: 600_000 });
    const id = await door.listen({ taskIds: [taskId] });
    await told(id, 2);
    const reading = gate();
    store.calls.length = 0;
    store.before = () => reading.opened;
    await there.tasks.lifecycle.handle(taskId).progress("late");
    await expect.poll(() => store.calls.length).toBe(1);
    await door.cancel(id);
    reading.open();
    await door.send("tasks/get", { taskId });
    expect((await told(id, 2)).map(gist)).toEqual(["subscriptions/acknowledged", "working"]);
    await there.tasks.lifecycle.handle(taskId).complete({});
  });

  test("a client that goes, and a connection that closes, free everything", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const [client, server] = InMemoryTransport.createLinkedPair();
    serveStdio(
      () => {
        const mcp = new McpServer({ name: "test", version: "1.0.0" });
        tasks.attach(mcp);
        return mcp;
      },
      { transport: tasks.wrapTransport(server) },
    );
    const door = await StdioDoor.over(client, () => client.close());
    const { result } = await door.send("tools/call", { name: "work", arguments: {} });
    const taskId = result?.taskId ?? "";
    await door.listen({ taskIds: [taskId] });
    await door.listen({ taskIds: [taskId] });
    await expect.poll(() => door.subscribed.length).toBe(4);
    await client.close();
    tool.gate.open();
    await expect.poll(() => tasks.stats().watchedTasks).toBe(0);
  });

  test("tasks.close() answers every subscription, and the connection stays", async () => {
    const { door, tasks, tool, startTask, told } = await open();
    const taskId = await startTask();
    const id = await door.listen({ taskIds: [taskId] });
    const both = await door.listen({ toolsListChanged: true, taskIds: [taskId] });
    await told(id, 2);
    await told(both, 2);
    const closing = tasks.close({ drainMs: 5_000 });
    tool.gate.open();
    await closing;
    expect((await told(id, 4)).map(gist)).toEqual([
      "subscriptions/acknowledged",
      "working",
      "completed",
      "complete",
    ]);
    expect((await told(both, 5)).map(gist)).toEqual([
      "subscriptions/acknowledged",
      "working",
      "completed",
      "complete",
      "cancelled",
    ]);
    expect((await door.send("tools/list")).result).toBeDefined();
  });

  test("the SDK's own end is passed on, and nothing follows it", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const [client, server] = InMemoryTransport.createLinkedPair();
    const serving = serveStdio(
      () => {
        const mcp = new McpServer({ name: "test", version: "1.0.0" });
        tasks.attach(mcp);
        return mcp;
      },
      { transport: tasks.wrapTransport(server) },
    );
    const door = await StdioDoor.over(client, async () => undefined);
    const { result } = await door.send("tools/call", { name: "work", arguments: {} });
    await door.listen({ taskIds: [result?.taskId] });
    await expect.poll(() => door.subscribed.length).toBe(2);
    await serving.close();
    tool.gate.open();
    await expect.poll(() => tasks.stats().watchedTasks).toBe(0);
    expect(door.subscribed.map(gist)).toEqual(["subscriptions/acknowledged", "working", "complete"]);
  });

  test("a slow reader gets the latest state: the next one is read when the last has left", async () => {
    const started = startTasks({ progressIntervalMs: 0 });
    const tool = gatedTool(started.tasks, "work");
    const [client, server] = InMemoryTransport.createLinkedPair();
    let drained: ReturnType<typeof gate> | undefined;
    const send = server.send.bind(server);
    server.send = async (message, options) => {
      await send(message, options);
      if ("method" in message && message.method === "notifications/tasks") await drained?.opened;
    };
    serveStdio(
      () => {
        const mcp = new McpServer({ name: "test", version: "1.0.0" });
        started.tasks.attach(mcp);
        return mcp;
      },
      { transport: started.tasks.wrapTransport(server) },
    );
    const door = await StdioDoor.over(client, () => client.close());
    const { result } = await door.send("tools/call", { name: "work", arguments: {} });
    drained = gate();
    await door.listen({ taskIds: [result?.taskId] });
    await expect.poll(() => door.subscribed.length).toBe(2);
    for (let step = 1; step <= 200; step += 1) await tool.runs[0]?.progress(`step ${step}`);
    expect(door.subscribed.length).toBe(2);
    drained.open();
    await expect.poll(() => door.subscribed.length).toBe(3);
    expect(door.subscribed.at(-1)?.params).toMatchObject({ statusMessage: "step 200" });
    tool.gate.open();
    await expect.poll(() => door.subscribed.map(gist).at(-1)).toBe("complete");
  });
});

describe("where there is no such route", () => {
  test("a connection of 2025-11-25 is told that the method is unknown, whatever its frames claim", async () => {
    const { tasks, store } = startTasks();
    const door = await StdioDoor.serve(tasks, { push: true });
    await door.initialize();
    const { error } = await door.send("subscriptions/listen", { notifications: { taskIds: [nobody] } });
    expect(error?.code).toBe(-32_601);
    await door.listen({ taskIds: [nobody] });
    await expect.poll(() => door.subscribed.map(gist)).toEqual([-32_601]);
    expect(store.calls).toEqual([]);
  });

  test("so is a client of a server of SDK v1, and of one that was connected by hand", async () => {
    const { tasks, store } = startTasks();
    const [client, server] = InMemoryTransportV1.createLinkedPair();
    const v1 = tasks.attach(new McpServerV1({ name: "test", version: "1.0.0" }));
    await v1.connect(tasks.wrapTransport(server));
    const [clientByHand, serverByHand] = InMemoryTransport.createLinkedPair();
    const byHand = tasks.attach(new McpServer({ name: "test", version: "1.0.0" }));
    await byHand.connect(tasks.wrapTransport(serverByHand));
    for (const door of [
      await StdioDoor.over(client, () => v1.close()),
      await StdioDoor.over(clientByHand, () => byHand.close()),
    ]) {
      await door.initialize();
      await door.listen({ taskIds: [nobody] });
      await expect.poll(() => door.subscribed.map(gist)).toEqual([-32_601]);
      expect((await door.send("tools/list")).result).toBeDefined();
    }
    expect(store.calls).toEqual([]);
  });

  test("wrapTransport refuses what is no transport of one connection, and one that is in use", async () => {
    const { tasks } = startTasks();
    const anyTransport = tasks.wrapTransport.bind(tasks) as (transport: unknown) => unknown;
    for (const wrong of [undefined, null, {}, { start: 1 }, new WebStandardStreamableHTTPServerTransport()])
      expect(() => anyTransport(wrong)).toThrow(TypeError);
    const [client, server] = InMemoryTransport.createLinkedPair();
    Object.assign(server, { onmessage: () => undefined });
    expect(() => tasks.wrapTransport(server)).toThrow("before a server is connected");
    await client.close();
  });
});

test("a wrapped transport is the transport: its fields, its methods, its handlers", async () => {
  const { tasks } = startTasks();
  const [client, server] = InMemoryTransport.createLinkedPair();
  const wrapped = tasks.wrapTransport(server);
  expect(wrapped).toBeInstanceOf(InMemoryTransport);
  expect(wrapped.constructor.name).toBe("InMemoryTransport");
  wrapped.sessionId = "s";
  expect(server.sessionId).toBe("s");
  const errors: Error[] = [];
  const onError = (error: Error): void => void errors.push(error);
  Object.assign(wrapped, { onerror: onError });
  expect(wrapped.onerror).toBe(onError);
  await client.send({ jsonrpc: "2.0", method: "early" });
  const got: unknown[] = [];
  Object.assign(wrapped, { onmessage: (message: unknown) => void got.push(message) });
  await wrapped.start();
  expect(got, "what came before somebody listened").toEqual([{ jsonrpc: "2.0", method: "early" }]);
  let closed = 0;
  Object.assign(wrapped, { onclose: () => (closed += 1) });
  await wrapped.close();
  await nextTurn();
  expect(closed).toBe(1);
});

test("the client of the SDK v2 subscribes, hears of each change, and learns that it is over", async () => {
  const { tasks } = startTasks();
  const tool = gatedTool(tasks, "work");
  const [near, far] = InMemoryTransport.createLinkedPair();
  const serving = serveStdio(
    () => {
      const mcp = new McpServer({ name: "test", version: "1.0.0" });
      tasks.attach(mcp);
      return mcp;
    },
    { transport: tasks.wrapTransport(far) },
  );
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
      versionNegotiation: { mode: "auto" },
    },
  );
  const heard: unknown[] = [];
  client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method === "notifications/tasks") heard.push(params?.["status"]);
  };
  await client.connect(near);
  const { taskId } = await tasks.lifecycle.createTask();
  const subscription = await client.listen({ taskIds: [taskId] } as never);
  await expect.poll(() => heard).toEqual(["working"]);
  await tasks.lifecycle.handle(taskId).complete({ content: [] });
  expect(await subscription.closed).toBe("graceful");
  expect(heard).toEqual(["working", "completed"]);
  tool.gate.open();
  await client.close();
  await serving.close();
});
