import { describe, expect, test } from "vitest";
import { z } from "zod";

import type { Tasks, TaskToolConfig } from "../src/index.ts";
import { HttpDoor, resultOf } from "./support/http-door.ts";
import { callingClients, refusalOf, taskClients2025, taskIdOf } from "./support/keyed-clients.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { openV1Door } from "./support/v1-door.ts";
import type { WireResult } from "./support/wire.ts";

const config = { idempotencyArgument: "requestKey", inlineBudgetMs: 0 } as const;

/** A tool that refuses arguments it does not know, and keeps those it was called with. */
function strictTool(tasks: Tasks, more: Partial<TaskToolConfig> = {}): unknown[] {
  const runs: unknown[] = [];
  tasks.taskTool("save", { inputSchema: z.strictObject({ n: z.int() }), ...config, ...more }, (given) => {
    runs.push(given);
    return text(`saved ${JSON.stringify(given)}`);
  });
  return runs;
}

interface Listed {
  readonly name: string;
  readonly inputSchema: {
    readonly properties?: { readonly [name: string]: object };
    readonly required?: readonly string[];
  };
}

describe.each([...callingClients, ...taskClients2025])("%s", (_name, open) => {
  test("P02: a key among the arguments is a key, and neither the schema nor the handler sees it", async () => {
    const { tasks, store } = startTasks();
    const runs = strictTool(tasks);
    const client = await open(tasks);
    const taskId = taskIdOf(await client.call("save", { n: 1, requestKey: "k1" }));
    await new HttpDoor(tasks).until(taskId, "completed");
    await client.call("save", { requestKey: "k1", n: 1 });
    expect(runs).toEqual([{ n: 1 }]);
    expect(store.calls.filter(({ method }) => method === "create").map(({ taskId: id }) => id)).toContain(
      taskId,
    );
    // Without the key it is another task.
    await new HttpDoor(tasks).until(taskIdOf(await client.call("save", { n: 1 })), "completed");
    expect(runs).toHaveLength(2);
  });

  test("the key is no part of what a repeat has in common: the same arguments without it are refused nothing", async () => {
    const { tasks } = startTasks();
    strictTool(tasks);
    const client = await open(tasks);
    // The metadata say the key one time, the argument the other.
    const first = taskIdOf(await client.call("save", { n: 1 }, "k1"));
    await new HttpDoor(tasks).until(first, "completed");
    expect(refusalOf(await client.call("save", { n: 1, requestKey: "k1" }))).toBeUndefined();
    expect(refusalOf(await client.call("save", { n: 2, requestKey: "k1" }))).not.toBeUndefined();
  });
});

describe.each(callingClients)("%s", (_name, open) => {
  test("what is wrong with a key that a model wrote is a tool error that it can repair", async () => {
    const { tasks } = startTasks();
    const runs = strictTool(tasks);
    const client = await open(tasks);
    const { result: malformed } = await client.call("save", { n: 1, requestKey: "" });
    expect(malformed).toMatchObject({
      isError: true,
      structuredContent: { code: "invalid_request", param: "requestKey" },
    });
    await client.call("save", { n: 1, requestKey: "k1" });
    const { result: conflict } = await client.call("save", { n: 2, requestKey: "k1" });
    expect(conflict).toMatchObject({
      isError: true,
      structuredContent: {
        code: "idempotency_conflict",
        param: "requestKey",
        recoveryHint: expect.stringContaining("new requestKey"),
      },
    });
    expect(runs).toEqual([{ n: 1 }]);
  });
});

describe.each(taskClients2025)("%s", (_name, open) => {
  test("a call that wants a task is answered by one or by an error, whoever wrote the key", async () => {
    const { tasks } = startTasks();
    strictTool(tasks);
    const client = await open(tasks);
    await client.call("save", { n: 1, requestKey: "k1" });
    const { error } = await client.call("save", { n: 2, requestKey: "k1" });
    expect(error).toMatchObject({
      code: -32_602,
      data: { code: "idempotency_conflict", param: "requestKey" },
    });
  });
});

describe("how the argument is listed", () => {
  const tools: readonly (readonly [string, Partial<TaskToolConfig>, object])[] = [
    ["with a schema", { inputSchema: z.strictObject({ n: z.int() }) }, { n: {} }],
    ["with an object of schemas", { inputSchema: { n: z.int() } }, { n: {} }],
    ["without a schema", {}, {}],
  ];

  async function listed(tasks: Tasks): Promise<readonly (readonly Listed[])[]> {
    const door = new HttpDoor(tasks);
    const { client } = await openV1Door(tasks);
    const replies = [
      resultOf(await door.send("tools/list")),
      resultOf(await door.send("tools/list", {}, { declare: false })),
      resultOf(await door.sendLegacy("tools/list")),
      await client.listTools(),
    ];
    return replies.map((reply) => (reply as WireResult & { tools: readonly Listed[] }).tools);
  }

  test.for(tools)(
    "beside those of a tool %s, to every client, as one that may be left out",
    async ([, given, own]) => {
      const { tasks } = startTasks();
      tasks.taskTool("save", { ...given, idempotencyArgument: "requestKey" }, () => text("saved"));
      tasks.taskTool("plain", {}, () => text("plain"));
      for (const list of await listed(tasks)) {
        const { properties = {}, required = [] } =
          list.find(({ name }) => name === "save")?.inputSchema ?? {};
        expect(Object.keys(properties)).toEqual([...Object.keys(own), "requestKey"]);
        expect(properties["requestKey"]).toMatchObject({ type: "string", minLength: 1, maxLength: 256 });
        expect(properties["requestKey"]).toHaveProperty("description");
        expect(required).not.toContain("requestKey");
        const plain = list.find(({ name }) => name === "plain");
        expect(plain?.inputSchema.properties ?? {}).toEqual({});
      }
    },
  );

  test.for(tools)("and taken out before a tool %s is called", async ([, given]) => {
    const { tasks } = startTasks();
    const seen: unknown[] = [];
    tasks.taskTool("save", { ...given, ...config, inlineBudgetMs: 60_000 }, (args) => {
      seen.push(args);
      return text("saved");
    });
    const { client } = await openV1Door(tasks);
    await client.callTool({ name: "save", arguments: { n: 1, requestKey: "k1" } });
    await new HttpDoor(tasks).callTool("save", { n: 1, requestKey: "k2" });
    const kept = given.inputSchema === undefined ? {} : { n: 1 };
    expect(seen).toEqual([kept, kept]);
  });
});

describe("which key counts", () => {
  test("the argument before the metadata: a host may send other metadata with each repeat of the model", async () => {
    const { tasks } = startTasks();
    const runs = strictTool(tasks);
    const door = new HttpDoor(tasks);
    const call = (meta: string, requestKey: string) =>
      door.callTool("save", { n: 1, requestKey }, { meta: { "longjobs/idempotencyKey": meta } });
    const first = await call("host-1", "k1");
    await door.until(first.taskId ?? "", "completed");
    await call("host-2", "k1");
    expect(runs).toHaveLength(1);
    await door.until((await call("host-1", "k2")).taskId ?? "", "completed");
    expect(runs).toHaveLength(2);
  });

  test("a tool without the option has no such argument: it is one like any other", async () => {
    const { tasks, store } = startTasks();
    const inputSchema = z.object({ requestKey: z.string() });
    tasks.taskTool("save", { inputSchema }, ({ requestKey }) => text(requestKey));
    const result = await new HttpDoor(tasks).callTool("save", { requestKey: "k1" });
    expect(result.content).toEqual(text("k1").content);
    expect(store.calls).toEqual([]);
  });
});

describe("what is refused at registration", () => {
  test.for([
    ["an empty name", ""],
    ["a name with a dash", "request-key"],
    ["a name that begins with a digit", "1key"],
    ["a name of 65 characters", "x".repeat(65)],
    ["a number", 7],
    ["null", null],
  ] as const)("%s", ([, idempotencyArgument]) => {
    const { tasks } = startTasks();
    const wrong = { idempotencyArgument } as unknown as TaskToolConfig;
    expect(() => tasks.taskTool("save", wrong, () => text("saved"))).toThrow(TypeError);
  });

  test.for([
    ["a schema", z.object({ requestKey: z.string() })],
    ["an object of schemas", { requestKey: z.string() }],
  ] as const)("a name that the tool's own arguments have, in %s", ([, inputSchema]) => {
    const { tasks } = startTasks();
    expect(() =>
      tasks.taskTool("save", { inputSchema, idempotencyArgument: "requestKey" }, () => text("saved")),
    ).toThrow(TypeError);
  });
});
