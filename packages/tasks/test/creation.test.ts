import { describe, expect, test } from "vitest";

import { errorOf, HttpDoor } from "./support/http-door.ts";
import { startTasks, takeErrors, type StartedTasks } from "./support/started-tasks.ts";
import { askName, gatedTool, text } from "./support/tools.ts";
import { gate, nextTurn } from "./support/turns.ts";

/** Holds every create back until the gate opens. */
function holdCreates({ store }: StartedTasks) {
  const held = gate();
  const reached = gate();
  store.before = async (method) => {
    if (method !== "create") return;
    reached.open();
    await held.opened;
  };
  return { reached: reached.opened, release: held.open };
}

function failCreates({ store }: StartedTasks): void {
  store.before = (method) => {
    if (method === "create") throw new Error("ECONNREFUSED /var/lib/longjobs/log.0001");
  };
}

describe("P01: no handle before the task can be read", () => {
  test("a delayed create delays the handle, and a get at its receipt succeeds", async () => {
    const started = startTasks();
    gatedTool(started.tasks, "work");
    const create = holdCreates(started);
    const http = new HttpDoor(started.tasks);
    let received = false;
    const handle = http.startTask("work").then((taskId) => {
      received = true;
      return taskId;
    });
    await create.reached;
    await nextTurn();
    expect(received).toBe(false);
    create.release();
    expect((await http.get(await handle)).status).toBe("working");
  });

  test("with a budget of 0 the handler starts only after the create, and never when it rejects", async () => {
    const started = startTasks();
    const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 0 });
    const create = holdCreates(started);
    const http = new HttpDoor(started.tasks);
    const handle = http.startTask("work");
    await create.reached;
    await nextTurn();
    expect(tool.runs).toEqual([]);
    create.release();
    await handle;
    failCreates(started);
    const error = errorOf(await http.send("tools/call", { name: "work" }));
    expect(error.code).toBe(-32_603);
    expect(error.message).not.toContain("/var/lib");
    expect(tool.runs).toHaveLength(1);
    expect(takeErrors(started)).toMatchObject([{ message: "ECONNREFUSED /var/lib/longjobs/log.0001" }]);
  });

  test("a create that rejects at the end of the budget aborts the handler, and the call is a JSON-RPC error", async () => {
    const started = startTasks();
    const tool = gatedTool(started.tasks, "work", { inlineBudgetMs: 5 });
    failCreates(started);
    const error = errorOf(await new HttpDoor(started.tasks).send("tools/call", { name: "work" }));
    expect(error.code).toBe(-32_603);
    expect(tool.runs[0]?.signal.aborted).toBe(true);
    expect(takeErrors(started)).toHaveLength(1);
  });

  test.for(["requestInput", "saveCheckpoint"] as const)(
    "a create that rejects in %s aborts the handler, and the call is a JSON-RPC error",
    async (promoting) => {
      const started = startTasks();
      const seen: unknown[] = [];
      started.tasks.taskTool("work", { inlineBudgetMs: 60_000 }, async (_args, task) => {
        const asking =
          promoting === "requestInput" ? task.requestInput({ who: askName }) : task.saveCheckpoint(1);
        await (asking as Promise<unknown>).catch((error: unknown) => seen.push(error, task.signal.reason));
        return text("swallowed it");
      });
      failCreates(started);
      const error = errorOf(await new HttpDoor(started.tasks).send("tools/call", { name: "work" }));
      expect(error.code).toBe(-32_603);
      expect(seen).toHaveLength(2);
      expect(seen[0]).toBe(seen[1]);
      expect(takeErrors(started)).toEqual([seen[0]]);
    },
  );

  test("a create that the store reports as failed, but that happened, is a task", async () => {
    const started = startTasks();
    gatedTool(started.tasks, "work");
    const { inner } = started.store;
    const create = inner.create.bind(inner);
    inner.create = async (record) => {
      await create(record);
      throw new Error("connection lost");
    };
    const http = new HttpDoor(started.tasks);
    expect((await http.get(await http.startTask("work"))).status).toBe("working");
  });
});

describe("work inside the budget writes nothing; what outlives it is recorded", () => {
  test("a result within the budget comes inline, and the store is never called", async () => {
    const { tasks, store } = startTasks();
    tasks.taskTool("quick", {}, async (_args, task) => {
      await task.progress("half");
      return text("done");
    });
    const result = await new HttpDoor(tasks).callTool("quick");
    expect(result.content).toEqual([{ type: "text", text: "done" }]);
    expect(store.calls).toEqual([]);
    expect(tasks.stats().attempts).toBe(0);
  });

  test("the end of the budget gives a handle with the progress so far, and the work goes on", async () => {
    const { tasks } = startTasks();
    const finish = gate();
    tasks.taskTool("work", { inlineBudgetMs: 20 }, async (_args, task) => {
      await task.progress("half");
      await finish.opened;
      return text("done");
    });
    const http = new HttpDoor(tasks);
    const handle = await http.callTool("work");
    expect(handle).toMatchObject({ resultType: "task", statusMessage: "half" });
    finish.open();
    const task = await http.until(handle.taskId ?? "", "completed");
    expect(task).not.toHaveProperty("statusMessage");
    expect(task.result?.content).toEqual([{ type: "text", text: "done" }]);
  });

  test("a question gives a handle at once, however long the budget is", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("ask", { inlineBudgetMs: 60_000 }, async (_args, task) => {
      await task.requestInput({ who: askName });
      return text("done");
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("ask");
    await http.until(taskId, "input_required");
    await http.update(taskId, { who: { action: "decline" } });
    await http.until(taskId, "completed");
  });

  test("a checkpoint gives a handle at once, and the checkpoint is kept", async () => {
    const { tasks, store } = startTasks();
    const finish = gate();
    tasks.taskTool("save", { inlineBudgetMs: 60_000 }, async (_args, task) => {
      await task.saveCheckpoint({ page: 3 });
      expect(task.checkpoint).toEqual({ page: 3 });
      await finish.opened;
      return text("done");
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("save");
    await expect
      .poll(async () => (await store.inner.get(taskId))?.checkpoint)
      .toMatchObject({ value: { page: 3 } });
    finish.open();
    await http.until(taskId, "completed");
  });

  test("a handler that completes its own task, and one that ends right after a checkpoint, end well", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("own", {}, (_args, task) => task.complete({ content: [{ type: "text", text: "mine" }] }));
    tasks.taskTool("late", {}, (_args, task) => {
      void task.saveCheckpoint(1);
      return text("after the checkpoint");
    });
    const http = new HttpDoor(tasks);
    const own = await http.until(await http.startTask("own"), "completed");
    expect(own.result?.content).toEqual([{ type: "text", text: "mine" }]);
    const late = await http.until(await http.startTask("late"), "completed");
    expect(late.result?.content).toEqual([{ type: "text", text: "after the checkpoint" }]);
  });
});

describe("arguments are checked before anything else", () => {
  test("bad ones get the SDK's own tool error: no run, no record", async () => {
    const { z } = await import("zod");
    const { tasks, store } = startTasks();
    let runs = 0;
    tasks.taskTool("add", { inputSchema: z.object({ a: z.number() }), inlineBudgetMs: 0 }, () => {
      runs += 1;
      return text("never");
    });
    const http = new HttpDoor(tasks, {
      extend: (mcp) =>
        void mcp.registerTool("plain", { inputSchema: z.object({ a: z.number() }) }, () => ({ content: [] })),
    });
    const ours = await http.callTool("add", { a: "x" });
    const theirs = await http.callTool("plain", { a: "x" });
    expect(ours.isError).toBe(true);
    expect(ours.content?.[0]?.text).toBe(theirs.content?.[0]?.text?.replace("plain", "add"));
    expect(runs).toBe(0);
    expect(store.calls).toEqual([]);
  });

  test("the handler gets what the schema made of them, the record keeps what came", async () => {
    const { z } = await import("zod");
    const { tasks, store } = startTasks();
    const inputSchema = z.object({
      n: z.number().default(7),
      when: z.string().transform((at) => new Date(at)),
    });
    const seen: unknown[] = [];
    tasks.taskTool("work", { inputSchema, inlineBudgetMs: 0 }, async (args, task) => {
      seen.push(args, (await store.inner.get(task.taskId))?.work?.arguments);
      return text("done");
    });
    const http = new HttpDoor(tasks);
    const when = "2026-07-28T00:00:00.000Z";
    await http.until(await http.startTask("work", { when }), "completed");
    expect(seen).toEqual([{ n: 7, when: new Date(when) }, { when }]);
  });
});
