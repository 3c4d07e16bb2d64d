import { describe, expect, test } from "vitest";
import { z } from "zod";

import type { PrepareRequest, Tasks, TaskToolConfig } from "../src/index.ts";
import { idOf, openEntry } from "./support/entries.ts";
import { errorOf, HttpDoor, resultOf } from "./support/http-door.ts";
import { keyMeta } from "./support/keyed-clients.ts";
import { NodeHttp } from "./support/node-http.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { askName, gatedTool, text } from "./support/tools.ts";
import { gate, nextTurn } from "./support/turns.ts";
import { openV1Door } from "./support/v1-door.ts";

const keyed = { meta: { [keyMeta]: "k1" } };
const anyResult = z.looseObject({});
const undeclared = { declare: false, ...keyed };

/** A tool that ends as the test says. */
function endingTool(tasks: Tasks, end: () => unknown, config: TaskToolConfig = { inlineBudgetMs: 60_000 }) {
  let runs = 0;
  tasks.taskTool("work", config, () => {
    runs += 1;
    return end() as never;
  });
  return () => runs;
}

describe("P01: a call with a key is in the store before its handler starts", () => {
  test("however long its budget is", async () => {
    const { tasks, store } = startTasks();
    const held = gate();
    const reached = gate();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    store.before = async (method, taskId) => {
      if (method !== "create" || taskId.includes(".")) return;
      reached.open();
      await held.opened;
    };
    const answer = new HttpDoor(tasks).callTool("work", {}, keyed);
    await reached.opened;
    await nextTurn();
    expect(tool.runs).toEqual([]);
    held.open();
    tool.gate.open();
    expect((await answer).content).toEqual(text("done").content);
    expect(tool.runs).toHaveLength(1);
  });

  test("and when the create rejects it never starts: the call is a JSON-RPC error, and its repeat works", async () => {
    const started = startTasks();
    const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 60_000 });
    started.store.before = (method, taskId) => {
      if (method === "create" && !taskId.includes(".")) throw new Error("ECONNREFUSED /var/lib/longjobs");
    };
    const door = new HttpDoor(started.tasks);
    const error = errorOf(await door.send("tools/call", { name: "work" }, keyed));
    expect(error.code).toBe(-32_603);
    expect(error.message).not.toContain("/var/lib");
    expect(takeErrors(started)).toHaveLength(1);
    expect(tool.runs).toEqual([]);
    started.store.before = () => undefined;
    tool.gate.open();
    expect((await door.callTool("work", {}, keyed)).content).toEqual(text("done").content);
  });
});

describe("the first call", () => {
  test("whose work asks something gets its handle at once, however long the budget is", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", { inlineBudgetMs: 60_000 }, async (_args, task) => {
      await task.saveCheckpoint({ before: "the question" });
      await task.requestInput({ who: askName });
      return text("done");
    });
    const door = new HttpDoor(tasks);
    const taskId = await door.startTask("ask", {}, keyed);
    await door.until(taskId, "input_required");
    const again = await door.callTool("ask", {}, keyed);
    expect(again).toMatchObject({ resultType: "task", taskId, status: "input_required" });
    expect(again).not.toHaveProperty("inputRequests");
    await door.update(taskId, { who: { action: "decline" } });
    await door.until(taskId, "completed");
  });

  test("whose work only saves a checkpoint may still be answered inline", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 60_000 }, async (_args, task) => {
      await task.saveCheckpoint({ page: 1 });
      return text("done");
    });
    expect((await new HttpDoor(tasks).callTool("work", {}, keyed)).content).toEqual(text("done").content);
  });

  test("whose handler ends its task itself is answered with how it ended", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 60_000 }, (_args, task) =>
      task.complete({ content: [{ type: "text", text: "mine" }] }),
    );
    const door = new HttpDoor(tasks);
    for (let times = 0; times < 2; times += 1)
      expect((await door.callTool("work", {}, keyed)).content).toEqual(text("mine").content);
  });

  test("that meets a shutdown within its budget gets its handle: the task is kept", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const call = new HttpDoor(tasks).callTool("work", {}, keyed);
    await expect.poll(() => tool.runs.length).toBe(1);
    await tasks.close({ shutdownGraceMs: 1_000 });
    const { resultType, taskId } = await call;
    expect(resultType).toBe("task");
    expect(await store.inner.get(taskId ?? "")).toMatchObject({ status: "working" });
  });
});

describe("P12: a disconnect before anything was sent does not abort a call with a key", () => {
  test.for([
    ["inside the budget", { inlineBudgetMs: 60_000 }, keyed],
    ["of a client that waits to the end", { fallback: "wait" }, undeclared],
  ] as const)("over a real socket, %s: its repeat gets the result", async ([, config, options]) => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", config);
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const client = new AbortController();
    const call = http.send("tools/call", { name: "work" }, { ...options, signal: client.signal });
    await expect.poll(() => tool.runs.length).toBe(1);
    client.abort();
    await expect(call).rejects.toThrow();
    // A round trip of a new connection: the old one has been noticed as closed by then.
    await http.send("server/discover", {});
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    const repeat = door.callTool("work", {}, undeclared);
    tool.gate.open();
    const answer = await repeat;
    const ended = answer.structuredContent === undefined ? answer : await followed(door, answer);
    expect(ended.content).toEqual(text("done").content);
    expect(tool.runs).toHaveLength(1);
  });

  async function followed(door: HttpDoor, answer: Parameters<typeof idOf>[0]) {
    const args = { taskId: idOf(answer), waitSeconds: 20 };
    return door.callTool("durable_task_get", args, { declare: false });
  }

  test("while the task is being recorded: the handler starts all the same", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 0 });
    const creating = gate();
    const create = gate();
    store.before = async (method, taskId) => {
      if (method !== "create" || taskId.includes(".")) return;
      creating.open();
      await create.opened;
    };
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const client = new AbortController();
    const call = http.send("tools/call", { name: "work" }, { ...keyed, signal: client.signal });
    await creating.opened;
    client.abort();
    await expect(call).rejects.toThrow();
    await http.send("server/discover", {});
    create.open();
    const { taskId } = await door.callTool("work", {}, keyed);
    await expect.poll(() => tool.runs.length).toBe(1);
    tool.gate.open();
    await door.until(taskId ?? "", "completed");
  });

  test("nor does the client that cancels its request over stdio, or ends the session", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const door = await StdioDoor.serve(tasks);
    const requestId = await door.post("tools/call", { name: "work" }, keyed);
    await expect.poll(() => tool.runs.length).toBe(1);
    await door.notify("notifications/cancelled", { requestId });
    await door.send("server/discover");
    await door.close();
    await nextTurn();
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    tool.gate.open();
    const later = await StdioDoor.serve(tasks);
    await expect
      .poll(async () => (await later.send("tools/call", { name: "work" }, keyed)).result?.content)
      .toEqual(text("done").content);
  });
});

describe("a repeat after the end", () => {
  const { code, message, data } = { code: -32_000, message: "No such file", data: { file: "a.png" } };

  test("of a failed task is its JSON-RPC error, with the hint to use a new key", async () => {
    const { tasks } = startTasks();
    const runs = endingTool(tasks, () => {
      throw Object.assign(new Error(message), { code, data });
    });
    const door = new HttpDoor(tasks);
    const first = errorOf(await door.send("tools/call", { name: "work" }, keyed));
    expect(first).toEqual({ code, message, data });
    for (const options of [keyed, undeclared]) {
      const again = errorOf(await door.send("tools/call", { name: "work" }, options));
      expect(again).toEqual({
        code,
        message,
        data: { ...data, recoveryHint: expect.stringContaining("new key") as unknown },
      });
    }
    expect(runs()).toBe(1);
  });

  test.for([
    ["nothing", undefined, { recoveryHint: expect.any(String) }],
    ["a text", "why", "why"],
    ["a hint of its own", { recoveryHint: "Try b.png." }, { recoveryHint: "Try b.png." }],
  ] as const)("of a failed task whose data are %s keeps them", async ([, own, told]) => {
    const { tasks } = startTasks();
    endingTool(tasks, () => {
      throw Object.assign(new Error(message), { code, ...(own === undefined ? {} : { data: own }) });
    });
    const door = new HttpDoor(tasks);
    await door.send("tools/call", { name: "work" }, keyed);
    expect(errorOf(await door.send("tools/call", { name: "work" }, keyed)).data).toEqual(told);
  });

  test("of a tool error is that tool error", async () => {
    const { tasks } = startTasks();
    const runs = endingTool(tasks, () => {
      throw new Error("Cold");
    });
    const door = new HttpDoor(tasks);
    const first = await door.callTool("work", {}, keyed);
    expect(first).toMatchObject({ isError: true, content: text("Cold").content });
    expect(await door.callTool("work", {}, keyed)).toEqual(first);
    expect(runs()).toBe(1);
  });

  test("of a cancelled task says so, and that another key starts over", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const door = new HttpDoor(tasks);
    const taskId = await door.startTask("work", {}, keyed);
    await door.cancel(taskId);
    await door.until(taskId, "cancelled");
    expect(errorOf(await door.send("tools/call", { name: "work" }, keyed))).toMatchObject({
      code: -32_603,
      data: { code: "cancelled", retryable: false, recoveryHint: expect.stringContaining("new key") },
    });
    expect(tool.runs).toHaveLength(1);
  });

  test("of a task that was cancelled while its first call waited is told to both in the same words", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const door = new HttpDoor(tasks);
    const first = door.send("tools/call", { name: "work" }, keyed);
    await expect.poll(() => tool.runs.length).toBe(1);
    await door.cancel(tool.runs[0]?.taskId ?? "");
    const error = errorOf(await first);
    expect(error).toMatchObject({ data: { code: "cancelled" } });
    expect(errorOf(await door.send("tools/call", { name: "work" }, keyed))).toEqual(error);
  });
});

describe("a repeat for a model", () => {
  test("says that an earlier call started the work, and how to wait for it", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = idOf(await client.call("work", {}, keyed));
    const again = await client.call("work", {}, keyed);
    expect(idOf(again)).toBe(taskId);
    expect(again.content?.[0]?.text).toContain("An earlier call with this idempotency key");
    expect(again.content?.[0]?.text).toContain("durable_task_get");
    tool.gate.open();
    expect((await client.call("durable_task_get", { taskId, waitSeconds: 20 })).content).toEqual(
      text("done").content,
    );
  });

  test("shows the question that is open, and how to answer it", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", {}, async (_args, task) => {
      await task.requestInput({ who: askName });
      return text("done");
    });
    const client = await openEntry(tasks);
    const taskId = idOf(await client.call("ask", {}, keyed));
    await client.call("durable_task_get", { taskId, waitSeconds: 20 });
    const again = await client.call("ask", {}, keyed);
    expect(again.structuredContent).toMatchObject({ taskId, status: "input_required" });
    expect(again.content?.[0]?.text).toContain("durable_task_respond");
    await client.call("durable_task_respond", { taskId, response: "Ada" });
    await client.call("durable_task_get", { taskId, waitSeconds: 20 });
  });
});

describe('fallback "wait": a repeat waits for the end of the work that is running', () => {
  const config = { fallback: "wait", inlineBudgetMs: 0 } as const;

  test("and gets its result, with the progress that is reported meanwhile", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", config);
    const door = new HttpDoor(tasks);
    const first = door.callTool("work", {}, undeclared);
    await expect.poll(() => tool.runs.length).toBe(1);
    const other = await StdioDoor.serve(tasks);
    const withToken = { declare: false, meta: { [keyMeta]: "k1", progressToken: 7 } };
    const repeat = other.send("tools/call", { name: "work" }, withToken);
    let done = 0;
    await expect
      .poll(async () => {
        await tool.runs[0]?.progress({ done: (done += 1), total: 1_000_000 });
        return other.notifications.length;
      })
      .toBeGreaterThan(1);
    expect(other.notifications[0]?.params).toMatchObject({ progressToken: 7, total: 1_000_000 });
    tool.gate.open();
    expect((await repeat).result?.content).toEqual(text("done").content);
    expect((await first).content).toEqual(text("done").content);
    expect(tool.runs).toHaveLength(1);
  });

  test("and when its client gives up, the work goes on and nothing is reported", async () => {
    const { store, tasks } = startTasks();
    const tool = gatedTool(tasks, "work", config);
    const door = new HttpDoor(tasks);
    const http = await NodeHttp.listen(door);
    const first = door.callTool("work", {}, undeclared);
    await expect.poll(() => tool.runs.length).toBe(1);
    const client = new AbortController();
    const before = store.calls.length;
    const repeat = http.send("tools/call", { name: "work" }, { ...undeclared, signal: client.signal });
    // It has found the task, and looks again and again.
    await expect.poll(() => store.calls.length).toBeGreaterThan(before + 6);
    client.abort();
    await expect(repeat).rejects.toThrow();
    await http.send("server/discover", {});
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    tool.gate.open();
    expect((await first).content).toEqual(text("done").content);
  });

  test("and on a server that shuts down it is told to come again", async () => {
    const { tasks, store } = startTasks();
    const tool = gatedTool(tasks, "work", config);
    const other = startTasks({ store: store.inner });
    gatedTool(other.tasks, "work", config);
    const first = new HttpDoor(tasks).callTool("work", {}, undeclared);
    await expect.poll(() => tool.runs.length).toBe(1);
    const repeat = new HttpDoor(other.tasks).send("tools/call", { name: "work" }, undeclared);
    await expect.poll(() => other.tasks.stats().watchedTasks).toBe(1);
    await other.tasks.close();
    expect(errorOf(await repeat)).toMatchObject({ data: { code: "shutdown", retryable: true } });
    tool.gate.open();
    await first;
  });
});

describe("P02: scopes", () => {
  test("a key of one person is another task for somebody else", async () => {
    const { tasks } = startTasks({ scope: ({ authInfo }) => authInfo?.clientId ?? "nobody" });
    const tool = gatedTool(tasks, "work");
    const door = new HttpDoor(tasks);
    const ids = [];
    for (const clientId of ["ada", "bob", "ada"])
      ids.push(await door.startTask("work", {}, { ...keyed, auth: { clientId } }));
    expect(ids[2]).toBe(ids[0]);
    expect(ids[1]).not.toBe(ids[0]);
    tool.gate.open();
    await door.until(ids[0] ?? "", "completed", { auth: { clientId: "ada" } });
    await door.until(ids[1] ?? "", "completed", { auth: { clientId: "bob" } });
    expect(tool.runs).toHaveLength(2);
  });
});

describe("prepare", () => {
  const ada = { action: "accept", content: { name: "Ada" } };

  function greeter(tasks: Tasks): PrepareRequest[] {
    const asked: PrepareRequest[] = [];
    tasks.taskTool(
      "greet",
      {
        inlineBudgetMs: 0,
        prepare: (_args, request) => {
          asked.push(request);
          if (request.inputResponses["who"] === undefined) return { inputRequests: { who: askName } };
        },
      },
      () => text("Hello"),
    );
    return asked;
  }

  test("the key counts when the task is made: questions come first, and a repeat is not asked them again", async () => {
    const { tasks } = startTasks();
    const asked = greeter(tasks);
    const door = new HttpDoor(tasks);
    const first = await door.callTool("greet", {}, keyed);
    expect(first.resultType).toBe("input_required");
    const params = { name: "greet", requestState: first.requestState, inputResponses: { who: ada } };
    const { taskId } = resultOf(await door.send("tools/call", params, keyed));
    await door.until(taskId ?? "", "completed");
    expect(asked).toHaveLength(2);
    // From the start, or with the answers: the task is there.
    for (const repeat of [{ name: "greet" }, params])
      expect(resultOf(await door.send("tools/call", repeat, keyed)).content).toEqual(text("Hello").content);
    expect(asked).toHaveLength(2);
  });

  test("other arguments are a conflict before anything is asked", async () => {
    const { tasks } = startTasks();
    const asked = greeter(tasks);
    const door = new HttpDoor(tasks);
    const { requestState } = await door.callTool("greet", {}, keyed);
    const params = { name: "greet", requestState, inputResponses: { who: ada } };
    await door.until(resultOf(await door.send("tools/call", params, keyed)).taskId ?? "", "completed");
    const other = await door.send("tools/call", { name: "greet", arguments: { other: true } }, keyed);
    expect(errorOf(other)).toMatchObject({ code: -32_602, data: { code: "idempotency_conflict" } });
    expect(asked).toHaveLength(2);
  });
});

describe("2025-11-25 tasks", () => {
  test.for(["memory", "v2 stdio"] as const)(
    "over %s the connection that made the task hears of its end, though another has repeated the call",
    async (road) => {
      const { tasks } = startTasks();
      const tool = gatedTool(tasks, "work");
      const [one, two] = [await openV1Door(tasks, { road }), await openV1Door(tasks, { road })];
      const call = { name: "work", task: {}, _meta: { [keyMeta]: "k1" } };
      for (const { client } of [one, two])
        await client.request({ method: "tools/call", params: call }, anyResult);
      tool.gate.open();
      await expect
        .poll(() => one.received.find(({ method }) => method === "notifications/tasks/status")?.params)
        .toMatchObject({ status: "completed" });
    },
  );
});

test("P23: nothing listens any more when calls with a key have been answered, however they were", async () => {
  const { tasks } = startTasks();
  const listen = tasks.lifecycle.onTaskChanged.bind(tasks.lifecycle);
  let listening = 0;
  tasks.lifecycle.onTaskChanged = (listener) => {
    const stop = listen(listener);
    listening += 1;
    return () => {
      listening -= 1;
      stop();
    };
  };
  let ends = "done";
  tasks.taskTool("work", { inlineBudgetMs: 60_000 }, async (_args, task) => {
    if (ends === "asked") await task.requestInput({ who: askName });
    if (ends === "failed") throw Object.assign(new Error("Broken"), { code: -32_007 });
    return text("done");
  });
  const door = new HttpDoor(tasks);
  for (let nth = 0; nth < 60; nth += 1) {
    ends = ["done", "asked", "failed"][nth % 3] ?? "";
    const key = { meta: { [keyMeta]: `k${nth}` } };
    for (let times = 0; times < 2; times += 1) {
      const { message } = await door.send("tools/call", { name: "work" }, key);
      const taskId = message.result?.taskId;
      if (times === 1 && taskId !== undefined)
        await door.update(taskId, { who: { action: "decline" } }).then(() => door.until(taskId, "completed"));
    }
  }
  expect(listening).toBe(0);
});

describe("a tool that must be a task", () => {
  test("is refused without the extension, key or not", async () => {
    const { tasks, store } = startTasks();
    gatedTool(tasks, "work", { taskSupport: "required" });
    const error = errorOf(await new HttpDoor(tasks).send("tools/call", { name: "work" }, undeclared));
    expect(error.code).toBe(-32_021);
    expect(store.calls).toEqual([]);
  });
});
