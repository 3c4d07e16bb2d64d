import { MemoryTaskStore } from "@longjobs/core";
import { McpServer, Server } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";
import { z } from "zod";

import { createTasks, withTasks, type AttachableServer, type Tasks } from "../src/index.ts";
import { HttpDoor, resultOf } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { echoTool, text } from "./support/tools.ts";

function newServer(options?: ConstructorParameters<typeof McpServer>[1]): McpServer {
  return new McpServer({ name: "test", version: "1.0.0" }, options);
}

function innerServer(): Server {
  return new Server({ name: "test", version: "1.0.0" });
}

const olderServer = {
  server: { _requestHandlers: new Map(), setRequestHandler: (): void => undefined },
  isConnected: (): boolean => false,
  registerTool: (): void => undefined,
};

/** What a client without tasks finds beside a tool of ours, in this order. */
const fallbackTools = ["durable_task_get", "durable_task_respond", "durable_task_cancel"];

async function toolNames(door: StdioDoor): Promise<string[] | undefined> {
  const { result } = await door.send("tools/list");
  return (result as { tools?: { name: string }[] }).tools?.map(({ name }) => name);
}

describe("taskTool and attach come in any order", () => {
  test.for([
    ["before", true],
    ["after", false],
  ] as const)("taskTool %s attach, beside tools of the server's own", async ([, before]) => {
    for (const options of [undefined, { capabilities: { tools: {} } }]) {
      const { tasks } = startTasks();
      const mcp = newServer(options);
      mcp.registerTool("first", {}, () => ({ content: [] }));
      if (before) echoTool(tasks);
      expect(tasks.attach(mcp)).toBe(mcp);
      if (!before) echoTool(tasks);
      mcp.registerTool("last", {}, () => ({ content: [] }));
      const door = await StdioDoor.connect(mcp);
      await door.initialize();
      expect((await toolNames(door))?.toSorted()).toEqual(
        [...fallbackTools, "echo", "first", "last"].toSorted(),
      );
      const { result } = await door.send("tools/call", { name: "echo", arguments: { words: "hi" } });
      expect(result).toEqual(text("hi"));
      expect((await door.send("tools/call", { name: "last", arguments: {} })).result).toEqual({
        content: [],
      });
    }
  });

  test("a tool that is registered after the server connected is there at once, on every server that lives", async () => {
    const { tasks } = startTasks();
    const doors = [await StdioDoor.serve(tasks), await StdioDoor.serve(tasks)];
    for (const door of doors) expect(await toolNames(door)).toEqual([]);
    echoTool(tasks);
    for (const door of doors) expect(await toolNames(door)).toEqual(["echo"]);
  });

  test("a server without tasks tools can be attached, and so can many", async () => {
    const { tasks } = startTasks();
    const servers = Array.from({ length: 200 }, () => newServer());
    for (const mcp of servers) tasks.attach(mcp);
    echoTool(tasks);
    const door = await StdioDoor.connect(servers[0] ?? newServer());
    await door.initialize();
    expect(await toolNames(door)).toEqual(["echo", ...fallbackTools]);
  });
});

describe("what a handler is called with", () => {
  async function argsOf(register: (tasks: Tasks, seen: unknown[]) => void, args: object): Promise<unknown> {
    const { tasks } = startTasks();
    const seen: unknown[] = [];
    register(tasks, seen);
    await new HttpDoor(tasks).callTool("work", args);
    return seen[0];
  }

  test("the schema's output, from a zod object", async () => {
    const inputSchema = z.object({ n: z.coerce.number(), s: z.string().default("x") });
    const register = (tasks: Tasks, seen: unknown[]): void =>
      tasks.taskTool("work", { inputSchema }, (args) => {
        seen.push(args);
        return text("done");
      });
    expect(await argsOf(register, { n: "7" })).toEqual({ n: 7, s: "x" });
  });

  test("the same from a raw shape", async () => {
    const register = (tasks: Tasks, seen: unknown[]): void =>
      tasks.taskTool("work", { inputSchema: { n: z.number() } }, (args) => {
        seen.push(args);
        return text("done");
      });
    expect(await argsOf(register, { n: 7 })).toEqual({ n: 7 });
  });

  test("nothing, without a schema", async () => {
    const register = (tasks: Tasks, seen: unknown[]): void =>
      tasks.taskTool("work", {}, (args) => {
        seen.push(args);
        return text("done");
      });
    expect(await argsOf(register, { n: 7 })).toEqual({});
  });

  test("title, description, annotations, schemas and _meta are listed", async () => {
    const { tasks } = startTasks();
    tasks.taskTool(
      "work",
      {
        title: "Work",
        description: "Works.",
        annotations: { readOnlyHint: true },
        inputSchema: { n: z.number() },
        outputSchema: z.object({ total: z.number() }),
        _meta: { "org.example/cost": 3 },
      },
      () => text("done"),
    );
    const { tools } = resultOf(await new HttpDoor(tasks).send("tools/list")) as { tools?: object[] };
    expect(tools).toMatchObject([
      {
        name: "work",
        title: "Work",
        description: "Works.",
        annotations: { readOnlyHint: true },
        inputSchema: { properties: { n: { type: "number" } }, required: ["n"] },
        outputSchema: { properties: { total: { type: "number" } } },
        _meta: { "org.example/cost": 3 },
      },
    ]);
  });
});

describe("attach says what is wrong", () => {
  test("twice on one server, by the same Tasks or another", () => {
    const { tasks } = startTasks();
    const mcp = newServer();
    tasks.attach(mcp);
    expect(() => tasks.attach(mcp)).toThrow(/attached to this server already/);
    expect(() => startTasks().tasks.attach(mcp)).toThrow(/attached to this server already/);
  });

  test("after the server connected", async () => {
    const { tasks } = startTasks();
    const mcp = newServer();
    await StdioDoor.connect(mcp);
    expect(() => tasks.attach(mcp)).toThrow(/before the server connects/);
  });

  test("a server that serves task methods itself is left as it was", async () => {
    const { tasks } = startTasks();
    const mcp = newServer();
    mcp.server.setRequestHandler(
      "tasks/get",
      { params: z.looseObject({}), result: z.looseObject({}) },
      async () => ({}),
    );
    expect(() => tasks.attach(mcp)).toThrow(/tasks\/get/);
    const door = await StdioDoor.connect(mcp);
    const { capabilities } = (await door.initialize()) as { capabilities?: object };
    expect(capabilities).toEqual({});
  });

  test.for([
    ["nothing", undefined],
    ["null", null],
    ["the inner Server", innerServer()],
    ["a server of another line, without the methods of this one", olderServer],
    [
      "a future server whose handlers are elsewhere",
      Object.assign(newServer(), { server: Object.assign(innerServer(), { _requestHandlers: undefined }) }),
    ],
  ] as const)("on %s", ([, server]) => {
    const { tasks } = startTasks();
    expect(() => tasks.attach(server as unknown as AttachableServer)).toThrow(
      /McpServer of @modelcontextprotocol\/server, from 2\.3 on/,
    );
  });

  test("a tool name that the server has already", () => {
    const { tasks } = startTasks();
    const mcp = newServer();
    mcp.registerTool("echo", {}, () => ({ content: [] }));
    echoTool(tasks);
    expect(() => tasks.attach(mcp)).toThrow(/echo/);
  });
});

describe("withTasks is createTasks and attach for the one-server case", () => {
  test("it serves", async () => {
    const mcp = newServer();
    await using tasks = withTasks(mcp, { store: new MemoryTaskStore(), scope: null });
    echoTool(tasks);
    const door = await StdioDoor.connect(mcp);
    await door.initialize();
    expect(await toolNames(door)).toEqual(["echo", ...fallbackTools]);
  });

  test("a second call with one store shows the form for many servers", async () => {
    const store = new MemoryTaskStore();
    await using _tasks = withTasks(newServer(), { store });
    expect(() => withTasks(newServer(), { store })).toThrow(
      /const tasks = createTasks\(\{ store \}\)[^]*tasks\.attach\(server\)/,
    );
  });

  test("a call that failed does not use up its store", async () => {
    const store = new MemoryTaskStore();
    expect(() => withTasks({} as AttachableServer, { store })).toThrow(/McpServer/);
    await using _tasks = withTasks(newServer(), { store });
  });

  test("stores of one kind are stores of their own", async () => {
    await using first = withTasks(newServer(), { store: new MemoryTaskStore() });
    await using second = withTasks(newServer(), { store: new MemoryTaskStore() });
    expect(first).not.toBe(second);
  });
});

test("a user's own Tasks object can be disposed of, and closing twice is harmless", async () => {
  const tasks = createTasks({ store: new MemoryTaskStore() });
  await tasks.close();
  await tasks[Symbol.asyncDispose]();
  expect(tasks.stats()).toEqual({
    attempts: 0,
    handlers: 0,
    queuedRuns: 0,
    lateOutcomes: 0,
    queuedWrites: 0,
    watchedTasks: 0,
    watchedOwners: 0,
  });
});
