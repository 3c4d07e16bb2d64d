import { LongJobsError, MemoryTaskStore } from "@longjobs/core";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";

import type { ToolResult } from "../src/index.ts";
import { entries, openEntry, start, until, words } from "./support/entries.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { gatedTool, greeter, text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";

const get = "durable_task_get";
const cancel = "durable_task_cancel";

// CASES part 2, tasks: "facade results carry no isError/outputSchema".
describe("the result comes back as the tool's own", () => {
  const results: readonly (readonly [string, ToolResult])[] = [
    ["a text", text("done")],
    [
      "several blocks",
      {
        content: [
          { type: "text", text: "one" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
        ],
      },
    ],
    ["structured content beside a text", { ...text("3"), structuredContent: { sum: 3 } }],
    ["an error that the model should see", { ...text("no such file"), isError: true }],
    ["a result with _meta", { ...text("done"), _meta: { "org.example/cost": 3 } }],
  ];

  test.for(results)("%s", async ([, result]) => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => result);
    for (const [, open] of entries) {
      const client = await open(tasks);
      const taskId = await start(client, "work");
      const done = await client.call(get, { taskId, waitSeconds: 5 });
      expect(done.content).toEqual(result.content);
      expect(done.isError).toEqual(result.isError);
      const { structuredContent } = result;
      expect(done.structuredContent).toEqual({
        taskId,
        status: "completed",
        ...(structuredContent === undefined ? {} : { result: structuredContent }),
      });
      expect((done as { _meta?: object })._meta).toMatchObject(result._meta ?? {});
    }
  });

  test("a result without any content still says that the work is done", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("bare", { inlineBudgetMs: 0 }, () => ({}));
    tasks.taskTool("data", { inlineBudgetMs: 0 }, () => ({ structuredContent: { sum: 3 } }));
    const client = await openEntry(tasks);
    const bare = await client.call(get, { taskId: await start(client, "bare"), waitSeconds: 5 });
    expect(words(bare)).toContain("is completed");
    const data = await client.call(get, { taskId: await start(client, "data"), waitSeconds: 5 });
    expect(words(data)).toContain('is completed. {"sum":3}');
  });

  test("asked again it is the same to the letter", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("done"));
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    const first = await client.call(get, { taskId, waitSeconds: 5 });
    expect(await client.call(get, { taskId, waitSeconds: 5 })).toEqual(first);
  });

  test("progress is in the reply: counts, and a message with a percentage that is rounded down", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    await tool.runs[0]?.progress({ message: "reading", done: 199, total: 200 });
    const reply = await client.call(get, { taskId });
    expect(reply.structuredContent).toEqual({
      taskId,
      status: "working",
      statusMessage: "reading: 199 of 200 (99 %)",
      progress: { done: 199, total: 200 },
    });
    expect(words(reply)).toContain('It says: "reading: 199 of 200 (99 %)".');
    tool.gate.open();
  });

  test("tools without inputSchema, with one, and with an outputSchema are followed alike", async () => {
    const { tasks } = startTasks();
    const config = { inlineBudgetMs: 0 };
    tasks.taskTool("bare", config, () => text("bare"));
    tasks.taskTool("given", { ...config, inputSchema: z.object({ n: z.number() }) }, ({ n }) => text(`${n}`));
    tasks.taskTool("shaped", { ...config, outputSchema: z.object({ n: z.number() }) }, () => ({
      ...text("shaped"),
      structuredContent: { n: 1 },
    }));
    for (const [, open] of entries) {
      const client = await open(tasks);
      const said = async (name: string, args: object = {}): Promise<string> =>
        words(await client.call(get, { taskId: await start(client, name, args), waitSeconds: 5 }));
      expect(await said("bare")).toBe("bare");
      expect(await said("given", { n: 7 })).toBe("7");
      expect(await said("shaped")).toBe("shaped");
    }
  });
});

describe("what went wrong is said as data that a model can repair", () => {
  test("an error that the handler threw: its message, and no stack", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => {
      throw new Error("The disk is cold");
    });
    const client = await openEntry(tasks);
    const result = await client.call(get, { taskId: await start(client, "work"), waitSeconds: 5 });
    expect(result).toMatchObject({ isError: true, content: [{ type: "text", text: "The disk is cold" }] });
  });

  test("a LongJobsError: its envelope", async () => {
    const { tasks } = startTasks();
    const envelope = {
      retryable: true,
      param: "page",
      recoveryHint: "Ask for page 2.",
      partial: { pages: 1 },
    };
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => {
      throw new LongJobsError("page_missing", "Page 3 is missing.", envelope);
    });
    const client = await openEntry(tasks);
    const result = await client.call(get, { taskId: await start(client, "work"), waitSeconds: 5 });
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { status: "completed", result: { code: "page_missing", ...envelope } },
    });
  });

  test("a protocol error: failed, with its code, and what to do next", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => {
      throw Object.assign(new Error("Broken"), { code: -32_000 });
    });
    const client = await openEntry(tasks);
    const result = await client.call(get, { taskId: await start(client, "work"), waitSeconds: 5 });
    expect(result).toMatchObject({
      isError: true,
      structuredContent: {
        status: "failed",
        error: { code: "-32000", message: "Broken", retryable: false, recoveryHint: expect.any(String) },
      },
    });
    expect(words(result)).toMatch(/failed: Broken/);
  });

  test.for(entries)(
    "%s: work that died with its process is interrupted, with a repairable error",
    async ([, open]) => {
      const first = startTasks();
      gatedTool(first.tasks, "work");
      const taskId = await start(await open(first.tasks), "work");
      await first.tasks.close({ shutdownGraceMs: 0 });
      const second = startTasks({ store: first.store.inner });
      gatedTool(second.tasks, "work");
      const result = await (await open(second.tasks)).call(get, { taskId, waitSeconds: 25 });
      expect(result).toMatchObject({
        isError: true,
        structuredContent: {
          status: "failed",
          error: {
            code: "interrupted",
            retryable: true,
            recoveryHint: expect.stringContaining("Call the tool again"),
          },
        },
      });
      expect(words(result)).toContain("Call the tool again");
    },
  );

  test("a task that has expired looks unknown, with a way on", async () => {
    let nowMs = Date.now();
    const { tasks } = startTasks({ now: () => nowMs, retentionMs: 1_000 });
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("done"));
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    await until(client, taskId, "completed");
    nowMs += 10_000_000;
    expect((await client.call(get, { taskId })).structuredContent?.["error"]).toMatchObject({
      code: "unknown_task",
      recoveryHint: expect.stringContaining("call the tool that started it again"),
    });
  });

  test("a store that is away for a moment is told with its code and a hint, and no word of the store", async () => {
    const started = startTasks();
    gatedTool(started.tasks, "work");
    const client = await openEntry(started.tasks);
    const taskId = await start(client, "work");
    const away = new LongJobsError("store_unavailable", "10.0.0.7 refused", { retryable: true });
    started.store.before = () => Promise.reject(away);
    for (const name of [get, cancel, "durable_task_respond"]) {
      const result = await client.call(name, { taskId, response: "x" });
      expect(result.isError).toBe(true);
      expect(result.structuredContent?.["error"]).toMatchObject({
        code: "store_unavailable",
        retryable: true,
        recoveryHint: expect.stringContaining("again"),
      });
      expect(JSON.stringify(result)).not.toContain("10.0.0.7");
    }
    started.store.before = () => undefined;
    expect(takeErrors(started)).toContain(away);
  });

  test("a fault of the server is a JSON-RPC error without its words, and reported once for each call", async () => {
    const started = startTasks({ waitPollMs: 60_000 });
    gatedTool(started.tasks, "work");
    const client = await openEntry(started.tasks);
    const taskId = await start(client, "work");
    const fault = new TypeError("/etc/secret is not a function");
    started.store.before = () => Promise.reject(fault);
    for (const name of [get, cancel, "durable_task_respond"]) {
      const { error } = await client.send("tools/call", { name, arguments: { taskId, response: "x" } });
      expect(error).toEqual({ code: -32_603, message: "The server could not do this." });
    }
    started.store.before = () => undefined;
    expect(takeErrors(started).filter((error) => error === fault)).toHaveLength(3);
  });
});

describe("durable_task_cancel", () => {
  test.for(entries)(
    "%s: the work is told to stop, and the reply says how to see that it has",
    async ([, open]) => {
      const { tasks } = startTasks();
      const stopped = gate();
      tasks.taskTool("work", { inlineBudgetMs: 0 }, async (_args, task) => {
        await new Promise<void>((resolve) => {
          task.signal.addEventListener("abort", () => resolve(), { once: true });
        });
        await stopped.opened;
        task.signal.throwIfAborted();
        return text("never");
      });
      const client = await open(tasks);
      const taskId = await start(client, "work");
      const reply = await client.call(cancel, { taskId });
      expect(words(reply)).toMatch(/^The task was asked to stop/);
      expect(words(reply)).toContain("durable_task_get");
      expect(reply.structuredContent).toMatchObject({ taskId, status: "working" });
      stopped.open();
      const ended = await until(client, taskId, "cancelled");
      expect(ended.isError).toBeUndefined();
      expect(words(ended)).toContain("cancelled");
      expect(await client.call(cancel, { taskId })).toEqual(ended);
    },
  );

  // CASES part 2, tasks: "cancel overwrites a completed result (get-then-update, no CAS)".
  test("a result that is there stays, and the cancel is answered with it", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("done"));
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    const done = await until(client, taskId, "completed");
    expect(await client.call(cancel, { taskId })).toEqual(done);
  });

  // CASES part 2, tasks: "needInput after cancel resurrects `cancelled` -> `input_required` and hangs".
  test("a question that is asked after the cancel is refused, and the task ends as cancelled", async () => {
    const { tasks } = startTasks();
    const ask = gate();
    const refused: unknown[] = [];
    tasks.taskTool("work", { inlineBudgetMs: 0 }, async (_args, task) => {
      await ask.opened;
      await task.ask({ prompt: "Still there?" }).catch((error: unknown) => {
        refused.push(error);
        throw error;
      });
    });
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    await client.call(cancel, { taskId });
    ask.open();
    await until(client, taskId, "cancelled");
    expect(refused).toMatchObject([{ code: "cancelled" }]);
  });

  test("P14: 50 cancels and a result at once leave one outcome", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    const cancels = Array.from({ length: 50 }, () => client.call(cancel, { taskId }));
    tool.gate.open();
    await Promise.all(cancels);
    const ended = await client.call(get, { taskId, waitSeconds: 5 });
    expect(["completed", "cancelled"]).toContain(ended.structuredContent?.["status"]);
    expect(await client.call(get, { taskId })).toEqual(ended);
  });

  test("of a task whose process died it makes a cancelled one at once", async () => {
    const first = startTasks();
    greeter(first.tasks);
    const client = await openEntry(first.tasks);
    const taskId = await start(client, "greet");
    await until(client, taskId, "input_required");
    await first.tasks.close({ shutdownGraceMs: 0 });
    const second = startTasks({ store: first.store.inner });
    greeter(second.tasks);
    const reply = await (await openEntry(second.tasks)).call(cancel, { taskId });
    expect(reply.structuredContent).toEqual({ taskId, status: "cancelled" });
  });
});

// CASES part 2, tasks: "background failure swallowed".
test("the end of work that nobody waits for is stored, and a store that fails then is reported", async () => {
  const store = new MemoryTaskStore();
  const started = startTasks({ store });
  const tool = gatedTool(started.tasks, "work");
  const client = await openEntry(started.tasks);
  const taskId = await start(client, "work");
  const full = new LongJobsError("no_space", "disk full");
  let failures = 0;
  started.store.before = (method) => {
    if (method !== "update" || failures >= 1) return undefined;
    failures += 1;
    throw full;
  };
  tool.gate.open();
  const ended = await client.call(get, { taskId, waitSeconds: 25 });
  await vi.waitFor(() => expect(failures).toBe(1));
  expect(["completed", "failed"]).toContain(ended.structuredContent?.["status"]);
  started.errors.length = 0;
});
