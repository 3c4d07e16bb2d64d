import { createRequestStateCodec } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";
import { z } from "zod";

import type { PrepareRequest, Tasks } from "../src/index.ts";
import { errorOf, HttpDoor, resultOf } from "./support/http-door.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { askName, form, text } from "./support/tools.ts";
import type { WireResult } from "./support/wire.ts";

const ada = { action: "accept", content: { name: "Ada" } };
const inputSchema = z.object({ greeting: z.string(), name: z.string().optional() });

/** A tool that asks for a name before it becomes a task. */
function greeterWithPrepare(tasks: Tasks, seen: PrepareRequest[] = [], name = "greet"): void {
  tasks.taskTool(
    name,
    {
      inputSchema,
      inlineBudgetMs: 0,
      prepare: (args, request) => {
        seen.push(request);
        const { who } = request.inputResponses;
        if (who === undefined) return { inputRequests: { who: askName } };
        const { content } = who as { content?: { name?: string } };
        return { arguments: { ...args, name: content?.name } };
      },
    },
    ({ greeting, name: called }) => text(`${greeting}, ${called ?? "nobody"}!`),
  );
}

const args = { greeting: "Hello" };

async function ask(http: HttpDoor, name = "greet"): Promise<Required<Pick<WireResult, "requestState">>> {
  const result = await http.callTool(name, args);
  expect(result.resultType).toBe("input_required");
  return { requestState: result.requestState ?? "" };
}

describe("prepare asks before a task exists", () => {
  test("the answer comes with a second call, which becomes the task; until then nothing is stored", async () => {
    const { tasks, store } = startTasks();
    const seen: PrepareRequest[] = [];
    greeterWithPrepare(tasks, seen);
    const http = new HttpDoor(tasks);
    const first = await http.callTool("greet", args);
    expect(first.inputRequests).toEqual({ who: askName });
    expect(store.calls).toEqual([]);
    const params = {
      name: "greet",
      arguments: args,
      requestState: first.requestState,
      inputResponses: { who: ada },
    };
    const handle = resultOf(await http.send("tools/call", params));
    const { result } = await http.until(handle.taskId ?? "", "completed");
    expect(result?.content).toEqual([{ type: "text", text: "Hello, Ada!" }]);
    expect(seen.map(({ inputResponses }) => inputResponses)).toEqual([{}, { who: ada }]);
    expect(seen[0]).toMatchObject({ transport: "http", scope: undefined });
  });

  test("the record keeps the arguments that prepare decided on", async () => {
    const { tasks, store } = startTasks();
    const kept: unknown[] = [];
    tasks.taskTool(
      "work",
      {
        inputSchema,
        inlineBudgetMs: 0,
        prepare: (given) => ({ arguments: { ...given, name: undefined, greeting: "Hi" } }),
      },
      async (given, task) => {
        kept.push(given.greeting, (await store.inner.get(task.taskId))?.work?.arguments);
        return text("done");
      },
    );
    const http = new HttpDoor(tasks);
    await http.until(await http.startTask("work", args), "completed");
    expect(kept).toEqual(["Hi", { greeting: "Hi" }]);
  });

  test("answers add up over several rounds", async () => {
    const { tasks } = startTasks();
    tasks.taskTool(
      "two",
      {
        prepare: (_args, { inputResponses }) => {
          if (inputResponses["who"] === undefined) return { inputRequests: { who: askName } };
          if (inputResponses["sure"] === undefined)
            return { inputRequests: { who: undefined, sure: form("Sure?", {}) } };
        },
      },
      () => text("both"),
    );
    const http = new HttpDoor(tasks);
    let call: WireResult = await http.callTool("two");
    const sure = { action: "accept", content: {} };
    for (const inputResponses of [{ who: ada }, { sure }]) {
      const params = { name: "two", arguments: {}, requestState: call.requestState, inputResponses };
      call = resultOf(await http.send("tools/call", params));
    }
    expect(call.content).toEqual([{ type: "text", text: "both" }]);
  });

  test.for([
    ["a wrong type", { action: "accept", content: { name: 7 } }],
    ["an unknown action", { action: "maybe" }],
    ["no response object", "Ada"],
  ] as const)("a bad answer is asked for again with the reason: %s", async ([, bad]) => {
    const { tasks } = startTasks();
    greeterWithPrepare(tasks);
    const http = new HttpDoor(tasks);
    const params = { name: "greet", arguments: args, ...(await ask(http)), inputResponses: { who: bad } };
    const again = resultOf(await http.send("tools/call", params));
    expect(again.resultType).toBe("input_required");
    expect(again.inputRequests?.["who"]?.params?.message).toMatch(
      /^Your name\?\n\nThe last answer was not accepted: ./,
    );
  });

  test("an answer that nobody asked for is no answer", async () => {
    const { tasks } = startTasks();
    greeterWithPrepare(tasks);
    const http = new HttpDoor(tasks);
    const params = { name: "greet", arguments: args, inputResponses: { who: ada } };
    expect(resultOf(await http.send("tools/call", params)).resultType).toBe("input_required");
  });
});

describe("what a client carries is signed, and belongs to one call", () => {
  test.for([
    ["nothing of ours", () => "hello"],
    ["a changed signature", (state: string) => `${state.slice(0, -4)}AAAA`],
    ["a changed body", (state: string) => state.replace("lj1.", "lj1.A")],
    ["a body without a signature", (state: string) => state.split(".").slice(0, 2).join(".")],
    ["a part too many", (state: string) => `${state}.A`],
    ["no base64", (state: string) => `${state.split(".").slice(0, 2).join(".")}.%%%`],
  ] as const)("a requestState is refused: %s", async ([, change]) => {
    const { tasks, store } = startTasks();
    greeterWithPrepare(tasks);
    const http = new HttpDoor(tasks);
    const { requestState } = await ask(http);
    const params = {
      name: "greet",
      arguments: args,
      requestState: change(requestState),
      inputResponses: { who: ada },
    };
    expect(errorOf(await http.send("tools/call", params)).code).toBe(-32_602);
    expect(store.calls).toEqual([]);
  });

  test("one that is too old is refused", async () => {
    let nowMs = Date.now();
    const { tasks } = startTasks({ now: () => nowMs });
    greeterWithPrepare(tasks);
    const http = new HttpDoor(tasks);
    const params = { name: "greet", arguments: args, ...(await ask(http)), inputResponses: { who: ada } };
    nowMs += 60 * 60 * 1_000;
    expect(errorOf(await http.send("tools/call", params)).code).toBe(-32_602);
  });

  test("one of another process is taken with the same secret, and refused without", async () => {
    const requestStateSecret = "a secret of more than 32 characters";
    const doors = [{ requestStateSecret }, { requestStateSecret }, {}].map((options) => {
      const { tasks } = startTasks(options);
      greeterWithPrepare(tasks);
      return new HttpDoor(tasks);
    });
    const [first, same, other] = doors as [HttpDoor, HttpDoor, HttpDoor];
    const params = { name: "greet", arguments: args, ...(await ask(first)), inputResponses: { who: ada } };
    const handle = resultOf(await same.send("tools/call", params));
    await same.until(handle.taskId ?? "", "completed");
    expect(errorOf(await other.send("tools/call", params)).code).toBe(-32_602);
  });

  test.for([
    ["another tool", { name: "other", arguments: args }, {}],
    ["other arguments", { name: "greet", arguments: { greeting: "Bye" } }, {}],
    ["another person", { name: "greet", arguments: args }, { headers: { "x-user": "eve" } }],
  ] as const)("answers that were given for one call are none for %s", async ([, call, options]) => {
    const { tasks } = startTasks({ scope: ({ headers }) => headers?.["x-user"] ?? "ada" });
    greeterWithPrepare(tasks);
    greeterWithPrepare(tasks, [], "other");
    const http = new HttpDoor(tasks);
    const params = { ...call, ...(await ask(http)), inputResponses: { who: ada } };
    expect(errorOf(await http.send("tools/call", params, options)).code).toBe(-32_602);
  });
});

describe("prepare that throws makes no task", () => {
  test.for([
    ["an Error", new Error("no city"), { isError: true, content: [{ type: "text", text: "no city" }] }],
    ["undefined", undefined, { isError: true, content: [{ type: "text", text: "undefined" }] }],
  ] as const)("%s is a tool error", async ([, thrown, expected]) => {
    const { tasks, store } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0, prepare: () => Promise.reject(thrown as Error) }, () =>
      text("no"),
    );
    expect(await new HttpDoor(tasks).callTool("work")).toMatchObject(expected);
    expect(store.calls).toEqual([]);
  });

  test("a protocol error is a JSON-RPC error, whatever its data is", async () => {
    const { tasks } = startTasks();
    const error = Object.assign(new Error("Pay first"), { code: -32_050, data: { price: 1n } });
    tasks.taskTool("work", { prepare: () => Promise.reject(error) }, () => text("no"));
    const told = errorOf(await new HttpDoor(tasks).send("tools/call", { name: "work" }));
    expect(told).toMatchObject({
      code: -32_050,
      message: "Pay first",
      data: { omitted: expect.any(String) },
    });
  });

  test.for([
    ["a question the protocol does not know", { inputRequests: { q: { method: "tools/list" } } }],
    ["text", "ready"],
    ["arguments that JSON cannot hold", { arguments: { n: 1n } }],
  ] as const)("giving %s is a fault of the server, reported and not told", async ([, given]) => {
    const started = startTasks();
    started.tasks.taskTool("work", { inlineBudgetMs: 0, prepare: () => given as never }, () => text("no"));
    const told = errorOf(await new HttpDoor(started.tasks).send("tools/call", { name: "work" }));
    expect(told).toEqual({ code: -32_603, message: "The server could not do this." });
    expect(takeErrors(started)).toHaveLength(1);
  });

  test("asking a client what it did not declare is -32021", async () => {
    const { tasks } = startTasks();
    greeterWithPrepare(tasks);
    const params = { name: "greet", arguments: args };
    const told = errorOf(await new HttpDoor(tasks).send("tools/call", params, { capabilities: {} }));
    expect(told).toMatchObject({
      code: -32_021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
  });
});

test("a server's own requestState codec goes on serving its own tools, beside prepare", async () => {
  const codec = createRequestStateCodec<{ step: number }>({ key: "k".repeat(32) });
  const { tasks } = startTasks();
  greeterWithPrepare(tasks);
  const steps: unknown[] = [];
  const http = new HttpDoor(tasks, {
    serverOptions: { requestState: codec },
    extend: (mcp) =>
      void mcp.registerTool("theirs", {}, async (ctx) => {
        const state: unknown = ctx.mcpReq.requestState();
        steps.push(state);
        if (state !== undefined) return { content: [] };
        return { resultType: "input_required", requestState: await codec.mint({ step: 1 }, ctx) } as never;
      }),
  });
  const ours = await ask(http);
  const params = { name: "greet", arguments: args, ...ours, inputResponses: { who: ada } };
  const handle = resultOf(await http.send("tools/call", params));
  await http.until(handle.taskId ?? "", "completed");
  const tampered = { ...params, requestState: `${ours.requestState}A` };
  expect(errorOf(await http.send("tools/call", tampered)).code).toBe(-32_602);

  const reply = await http.handler.fetch(await rawCall("theirs"));
  const { requestState } = ((await reply.json()) as { result: { requestState: string } }).result;
  await http.send("tools/call", { name: "theirs", requestState });
  expect(steps).toEqual([undefined, { step: 1 }]);
  expect(errorOf(await http.send("tools/call", { name: "theirs", ...ours })).code, "not taken there").toBe(
    -32_602,
  );
});

async function rawCall(name: string): Promise<Request> {
  const { modernFrame } = await import("./support/frames.ts");
  const { routingHeaders } = await import("./support/http-door.ts");
  const body = JSON.stringify(modernFrame("tools/call", { name }));
  return new Request("http://127.0.0.1/mcp", {
    method: "POST",
    headers: routingHeaders("tools/call", { name }),
    body,
  });
}
