import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { LongJobsError } from "@longjobs/core";
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { ProtocolError } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";

import type { ToolHandler, ToolResult } from "../src/index.ts";
import { HttpDoor, type Reply } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { nextTurn } from "./support/turns.ts";
import type { WireError, WireResult } from "./support/wire.ts";

type Ending = { readonly result: WireResult } | { readonly error: WireError };

/** How a handler ends, inline and as a task. */
async function endings(handler: ToolHandler<Record<string, never>>): Promise<[Ending, Ending]> {
  const { tasks } = startTasks();
  tasks.taskTool("work", { inlineBudgetMs: 60_000 }, handler);
  const inline = await new HttpDoor(tasks).send("tools/call", { name: "work" });
  const { tasks: others } = startTasks();
  others.taskTool("work", { inlineBudgetMs: 0 }, handler);
  const http = new HttpDoor(others);
  const taskId = await http.startTask("work");
  for (;;) {
    const task = await http.get(taskId);
    if (task.error !== undefined) return [endingOf(inline), { error: task.error }];
    if (task.result !== undefined) return [endingOf(inline), { result: task.result }];
    // A handler may wait for something outside, which no chain of promises lets in.
    await nextTurn();
  }
}

function endingOf({ message }: Reply): Ending {
  if (message.error !== undefined) return { error: message.error };
  const { _meta, ...result } = message.result as { _meta?: unknown };
  return { result };
}

/** The result of a handler that ends alike inline and as a task. */
async function resultOf(handler: ToolHandler<Record<string, never>>): Promise<WireResult> {
  const [inline, task] = await endings(handler);
  expect(inline).toEqual(task);
  if ("error" in task) throw new Error(`Not a result: ${JSON.stringify(task.error)}`);
  return task.result;
}

function throwing(error: unknown): ToolHandler<Record<string, never>> {
  return () => {
    throw error;
  };
}

describe("P10: a tool error is no failure", () => {
  test("isError is completed", async () => {
    const told = { ...text("No such city"), isError: true, resultType: "complete" };
    expect(await resultOf(() => ({ ...text("No such city"), isError: true }))).toEqual(told);
  });

  test("what is thrown reads exactly as the SDK answers a synchronous call, without a stack", async () => {
    const { tasks } = startTasks();
    const error = new Error("The oven is cold");
    tasks.taskTool("ours", {}, throwing(error));
    const http = new HttpDoor(tasks, {
      extend: (mcp) => void mcp.registerTool("theirs", {}, throwing(error) as never),
    });
    const [ours, theirs] = [await http.callTool("ours"), await http.callTool("theirs")];
    expect(ours).toEqual(theirs);
    expect(await resultOf(throwing(error))).toMatchObject({ ...text("The oven is cold"), isError: true });
  });

  test.for([
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["text", "plain text", "plain text"],
    ["a number", 7, "7"],
    ["a bare object", { message: "shaped like one" }, "shaped like one"],
    ["an object without a prototype", Object.create(null), /./],
    ["a symbol", Symbol("odd"), /odd/],
    ["an Error whose code is text", Object.assign(new Error("no entry"), { code: "ENOENT" }), "no entry"],
    ["an Error whose code is no integer", Object.assign(new Error("half"), { code: 1.5 }), "half"],
    ["an Error with the status of an HTTP answer", Object.assign(new Error("gone"), { code: 404 }), "gone"],
    [
      "an Error just outside the codes of JSON-RPC",
      Object.assign(new Error("out"), { code: -31_999 }),
      "out",
    ],
    ["an AbortSignal's time-out", new DOMException("took too long", "TimeoutError"), "took too long"],
  ] as const)("throwing %s is a tool error", async ([, thrown, words]) => {
    const result = await resultOf(throwing(thrown));
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toMatch(words);
  });

  test("a program that a handler runs and that fails is a tool error, whatever its exit code", async () => {
    const result = await resultOf(async () => {
      await promisify(execFile)("node", ["-e", "process.exitCode = 1"]);
    });
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toContain("Command failed");
  });

  test("a LongJobsError gives the model its envelope, codes of the author's own included", async () => {
    const result = await resultOf(
      throwing(
        new LongJobsError("city_unknown", "There is no such city.", {
          param: "city",
          recoveryHint: "Ask for one of the listed cities.",
          partial: { listed: 3 },
          cause: new Error("/etc/cities"),
        }),
      ),
    );
    const envelope = {
      code: "city_unknown",
      message: "There is no such city.",
      retryable: false,
      param: "city",
      recoveryHint: "Ask for one of the listed cities.",
      partial: { listed: 3 },
    };
    expect(result.structuredContent).toEqual(envelope);
    expect(JSON.parse(result.content?.[0]?.text ?? "")).toEqual(envelope);
    expect(result.isError).toBe(true);
  });
});

describe("a protocol error is one: JSON-RPC error inline, failed as a task", () => {
  test.for([
    [
      "an Error with code, message and data",
      Object.assign(new Error("Limit"), { code: -32_000, data: { n: 1 } }),
      { code: -32_000, message: "Limit", data: { n: 1 } },
    ],
    ["a bare object", { code: -32_042, message: "Bare" }, { code: -32_042, message: "Bare" }],
    ["an object without a message", { code: -32_042 }, { code: -32_042, message: /./ }],
    ["an object whose message is no text", { code: -32_042, message: 7 }, { code: -32_042, message: /./ }],
    [
      "data that JSON cannot hold",
      Object.assign(new Error("Big"), { code: -32_001, data: { n: 1n } }),
      { code: -32_001, message: "Big", data: { omitted: /BigInt/ } },
    ],
    [
      "the SDK's own ProtocolError",
      new ProtocolError(-32_001, "Gone", { n: 2 }),
      { code: -32_001, message: "Gone", data: { n: 2 } },
    ],
    [
      "one of the SDK v2 with a code of the author's own",
      new ProtocolError(4_001, "Refused", { n: 3 }),
      { code: 4_001, message: "Refused", data: { n: 3 } },
    ],
    [
      "one of the SDK v1 with a code of the author's own",
      new McpError(4_001, "Refused", { n: 3 }),
      { code: 4_001, message: /Refused/, data: { n: 3 } },
    ],
  ] as const)("%s", async ([, thrown, expected]) => {
    for (const ending of await endings(throwing(thrown))) {
      const { error } = ending as { error: WireError };
      expect(error.code).toBe(expected.code);
      expect(error.message).toMatch(expected.message);
      if ("data" in expected && "omitted" in expected.data) {
        expect((error.data as { omitted: string }).omitted).toMatch(expected.data.omitted);
      } else expect(error.data).toEqual("data" in expected ? expected.data : undefined);
    }
  });
});

function cycle(): object {
  const ring: { self?: object } = {};
  ring.self = ring;
  return ring;
}

describe("P11: what JSON cannot hold ends the task all the same", () => {
  test.for([
    ["a cycle", { structuredContent: cycle() }],
    ["a BigInt", { structuredContent: { n: 1n } }],
    [
      "a throwing toJSON",
      {
        structuredContent: {
          toJSON: () => {
            throw new Error("no");
          },
        },
      },
    ],
    [
      "a throwing getter",
      Object.defineProperty({}, "content", {
        enumerable: true,
        get: () => {
          throw new Error("no");
        },
      }),
    ],
    ["a Date", { structuredContent: { at: new Date(0) } }],
    ["a function", { structuredContent: { run: () => 1 } }],
    ["NaN", { structuredContent: { n: Number.NaN } }],
    ["25 levels of shared halves", { structuredContent: shared(25) }],
    ["300 levels", { structuredContent: deep(300) }],
    ["20,000 levels", { structuredContent: deep(20_000) }],
  ] as const)("%s", async ([, result]) => {
    const told = await resultOf(() => result as ToolResult);
    expect(told.isError).toBe(true);
    expect(told.content?.[0]?.text).toMatch(/./);
  });

  test("and says where it was", async () => {
    const told = await resultOf(() => ({ content: [], structuredContent: { list: [{ n: 1n }] } }));
    expect(told.structuredContent).toMatchObject({
      code: "invalid_json",
      param: "result.structuredContent.list[0].n",
    });
  });

  test("a status text, a question and a checkpoint are refused where they are given", async () => {
    const { tasks } = startTasks();
    const refused: unknown[] = [];
    tasks.taskTool("work", { inlineBudgetMs: 0 }, async (_args, task) => {
      const calls = [
        () => task.progress({ message: 1n as never }),
        () => task.requestInput({ q: { method: "elicitation/create", params: cycle() as never } }),
        () => task.saveCheckpoint(cycle() as never),
      ];
      for (const call of calls) await call().catch((error: unknown) => refused.push(error));
      return text("ended");
    });
    const http = new HttpDoor(tasks);
    await http.until(await http.startTask("work"), "completed");
    expect(refused).toHaveLength(3);
  });
});

function deep(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

function shared(levels: number): object {
  let value: object = { n: 1n };
  for (let level = 0; level < levels; level += 1) value = { left: value, right: value };
  return value;
}
