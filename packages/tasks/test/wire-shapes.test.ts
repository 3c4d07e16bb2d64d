import { describe, expect, test } from "vitest";

import { HttpDoor, resultOf } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { askName, echoTool, gatedTool, greeter, text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";

const taskKeys = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"];

/** The keys of a result, the SDK's `_meta` aside. */
function keysOf(result: object | undefined): string[] {
  return Object.keys(result ?? {})
    .filter((key) => key !== "_meta")
    .toSorted();
}

function sorted(...keys: string[]): string[] {
  return keys.toSorted();
}

describe("P06: each status has exactly its own fields", () => {
  test("a handle is flat: the task fields and resultType task", async () => {
    const { tasks } = startTasks();
    gatedTool(tasks, "work");
    const handle = await new HttpDoor(tasks).callTool("work");
    expect(keysOf(handle)).toEqual(sorted("resultType", ...taskKeys));
    expect(handle.resultType).toBe("task");
    expect(handle.status).toBe("working");
  });

  test("working, with and without a status message", async () => {
    const { tasks } = startTasks();
    const said = gate();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, async (_args, task) => {
      await said.opened;
      await task.progress({ message: "Page", done: 3, total: 9 });
      await new Promise<never>((_resolve, reject) => {
        task.signal.addEventListener("abort", () => reject(task.signal.reason as Error));
      });
    });
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("work");
    expect(keysOf(await http.get(taskId))).toEqual(sorted("resultType", ...taskKeys));
    said.open();
    let task = await http.get(taskId);
    while (task.statusMessage === undefined) task = await http.get(taskId);
    expect(task.statusMessage).toBe("Page: 3 of 9 (33 %)");
    expect(keysOf(task)).toEqual(sorted("resultType", "statusMessage", ...taskKeys));
  });

  test("input_required shows the open questions, and completed the result with its own resultType", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("greet");
    const asking = await http.until(taskId, "input_required");
    expect(keysOf(asking)).toEqual(sorted("resultType", "inputRequests", ...taskKeys));
    expect(asking.inputRequests).toEqual({ who: askName });
    await http.update(taskId, { who: { action: "accept", content: { name: "Ada" } } });
    const completed = await http.until(taskId, "completed");
    expect(keysOf(completed)).toEqual(sorted("resultType", "result", ...taskKeys));
    expect(keysOf(completed.result)).toEqual(sorted("content", "resultType", "structuredContent"));
    expect(completed.result?.resultType).toBe("complete");
  });

  test("failed shows the error, cancelled no payload", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("fail", { inlineBudgetMs: 0 }, () => {
      throw Object.assign(new Error("Broken"), { code: -32_000, data: { part: 7 } });
    });
    gatedTool(tasks, "work");
    const http = new HttpDoor(tasks);
    const failed = await http.until(await http.startTask("fail"), "failed");
    expect(keysOf(failed)).toEqual(sorted("resultType", "error", "statusMessage", ...taskKeys));
    expect(failed.error).toEqual({ code: -32_000, message: "Broken", data: { part: 7 } });
    const taskId = await http.startTask("work");
    await http.cancel(taskId);
    expect(keysOf(await http.until(taskId, "cancelled"))).toEqual(sorted("resultType", ...taskKeys));
  });

  test("update and cancel are acknowledged with nothing but resultType complete", async () => {
    const { tasks } = startTasks();
    greeter(tasks);
    const http = new HttpDoor(tasks);
    const taskId = await http.startTask("greet");
    const update = resultOf(await http.send("tasks/update", { taskId, inputResponses: {} }));
    expect(keysOf(update)).toEqual(["resultType"]);
    const cancel = resultOf(await http.send("tasks/cancel", { taskId }));
    expect(keysOf(cancel)).toEqual(["resultType"]);
    expect(cancel.resultType).toBe("complete");
    await http.until(taskId, "cancelled");
  });

  test("a result within the budget is the plain result of the tool", async () => {
    const { tasks } = startTasks();
    echoTool(tasks);
    const result = await new HttpDoor(tasks).callTool("echo", { words: "at once" });
    expect(keysOf(result)).toEqual(sorted("content", "resultType"));
    expect(result.resultType).toBe("complete");
  });
});

test("ttlMs is null for a task that is kept for ever, and pollIntervalMs is absent where none is suggested", async () => {
  const { tasks } = startTasks({ retentionMs: null, pollIntervalMs: null });
  gatedTool(tasks, "work");
  const http = new HttpDoor(tasks);
  const handle = await http.callTool("work");
  expect(handle.ttlMs).toBeNull();
  expect(handle).not.toHaveProperty("pollIntervalMs");
});

test("a tool's own retention and polling interval are in its handle", async () => {
  const { tasks } = startTasks();
  tasks.taskTool("quick", { inlineBudgetMs: 0, retentionMs: 3_600_000, pollIntervalMs: 77 }, () =>
    text("done"),
  );
  const handle = await new HttpDoor(tasks).callTool("quick");
  expect(handle.ttlMs).toBe(3_600_000);
  expect(handle.pollIntervalMs).toBe(77);
});

test("server/discover declares the extension and keeps what else the server declares", async () => {
  const { tasks } = startTasks();
  const http = new HttpDoor(tasks, {
    serverOptions: { capabilities: { extensions: { "org.example/x": {} } } },
  });
  const { capabilities } = resultOf(await http.send("server/discover")) as {
    capabilities?: { extensions?: object };
  };
  expect(capabilities?.extensions).toEqual({ "org.example/x": {}, "io.modelcontextprotocol/tasks": {} });
});

test("tools/list shows task tools like any others, the probe of attach not among them", async () => {
  const { tasks } = startTasks();
  echoTool(tasks);
  const { tools } = resultOf(await new HttpDoor(tasks).send("tools/list")) as { tools?: { name: string }[] };
  expect(tools?.map(({ name }) => name)).toEqual(["echo"]);
});
