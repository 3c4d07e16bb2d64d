import { describe, expect, test } from "vitest";

import { entries, openEntry, start, type Entry, type EntryCallOptions } from "./support/entries.ts";
import { deepValue } from "./support/frames.ts";
import { hostileIds } from "./support/hostile-ids.ts";
import { errorOf, HttpDoor, type HttpCallOptions } from "./support/http-door.ts";
import { recordText, startTasks } from "./support/started-tasks.ts";
import { gatedTool, greeter } from "./support/tools.ts";
import type { WireMessage } from "./support/wire.ts";

const three = ["durable_task_get", "durable_task_respond", "durable_task_cancel"] as const;
const unknown = "00000000-0000-4000-8000-000000000000";

function as(sub: string, iss = "https://id.example", clientId = "host"): HttpCallOptions {
  return { auth: { clientId, extra: { iss, sub } } };
}

function plain({ result, error }: WireMessage, taskId: string): string {
  return JSON.stringify({ result, error }).replaceAll(taskId, "ID");
}

test("P35: the same person in a new session has full access through the tools alone; another person in the same session has none", async () => {
  const { tasks } = startTasks({ scope: undefined as never });
  greeter(tasks);
  const mine: EntryCallOptions = { auth: { clientId: "host", extra: { iss: "i", sub: "ada" } } };
  const other: EntryCallOptions = { auth: { clientId: "host", extra: { iss: "i", sub: "eve" } } };
  const first = await openEntry(tasks);
  const taskId = await start(first, "greet", {}, mine);
  const foreign = await first.call(three[0], { taskId }, other);
  expect(foreign).toMatchObject({ isError: true, structuredContent: { error: { code: "unknown_task" } } });
  const later = await openEntry(tasks);
  const asked = await later.call(three[0], { taskId, waitSeconds: 5 }, mine);
  expect(asked.structuredContent).toMatchObject({ status: "input_required" });
  await later.call(three[1], { taskId, response: "Ada" }, mine);
  const done = await later.call(three[0], { taskId, waitSeconds: 5 }, mine);
  expect(done.structuredContent).toMatchObject({ status: "completed" });
});

test("whose task it is comes from the call that started it, whatever client that was", async () => {
  const { tasks } = startTasks({ scope: undefined as never });
  const tool = gatedTool(tasks, "work");
  const http = new HttpDoor(tasks);
  const taskId = await start(await openEntry(tasks), "work", {}, as("ada"));
  expect(tool.runs[0]?.scope).toBe('["https://id.example","ada","host"]');
  expect((await http.get(taskId, as("ada"))).status).toBe("working");
  expect(errorOf(await http.send("tasks/get", { taskId }, as("eve"))).code).toBe(-32_602);
});

describe("P33: ids that no server gave look like unknown ones, and reach no store", () => {
  test.for(hostileIds)("%s", async ([, taskId]) => {
    const { tasks, store } = startTasks();
    gatedTool(tasks, "work");
    for (const [, open] of entries) {
      const client = await open(tasks);
      for (const name of three) {
        const message = await client.send("tools/call", {
          name,
          arguments: { taskId, response: "x", waitSeconds: 25 },
        });
        expect(
          message.error?.code ?? message.result?.isError,
          JSON.stringify(message).slice(0, 300),
        ).toSatisfy((told) => told === true || told === -32_602);
        expect(JSON.stringify(message).length).toBeLessThan(1_500);
        if (typeof taskId === "string" && taskId !== deepValue && message.result !== undefined)
          expect(message.result.structuredContent?.["error"]).toMatchObject({ code: "unknown_task" });
      }
    }
    expect(store.calls).toEqual([]);
  });

  // CASES part 2, tasks: "`durable_task_cancel` / `_get` work on file handles (kind not checked)".
  test("a record that is no task looks unknown to all three, and stays as it is", async () => {
    const { tasks, store } = startTasks();
    gatedTool(tasks, "work");
    const now = new Date().toISOString();
    await store.inner.create({
      taskId: "file1",
      version: 1,
      status: "working",
      attempt: 1,
      crashes: 0,
      kind: "transfer",
      createdAt: now,
      lastUpdatedAt: now,
      ttlMs: null,
      retentionMs: null,
    });
    const before = await recordText(store, "file1");
    const client = await openEntry(tasks);
    const ask = async (name: string, taskId: string): Promise<string> =>
      plain(await client.send("tools/call", { name, arguments: { taskId, response: "x" } }), taskId);
    for (const name of three) expect(await ask(name, "file1")).toBe(await ask(name, "file2"));
    expect(await recordText(store, "file1")).toBe(before);
  });

  test("what is wrong with the other arguments is said before anything is read", async () => {
    const { tasks, store } = startTasks();
    gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    for (const waitSeconds of [-1, "soon", null, {}, Number.NaN]) {
      const result = await client.call(three[0], { taskId: unknown, waitSeconds });
      expect(result.isError).toBe(true);
    }
    expect(store.calls).toEqual([]);
  });
});

test("P34: 100 tasks of 100 people through one server, each asked by its owner and by the next one", async () => {
  const { tasks } = startTasks({ scope: undefined as never });
  tasks.taskTool("name", { inlineBudgetMs: 0 }, (_args, { scope }) => ({
    content: [{ type: "text", text: String(scope) }],
  }));
  const client: Entry = await openEntry(tasks);
  const person = (n: number): HttpCallOptions => as(`person ${n}`);
  const ids = await Promise.all(
    Array.from({ length: 100 }, (_unused, n) => start(client, "name", {}, person(n))),
  );
  await Promise.all(
    ids.map(async (taskId, n) => {
      const mine = await client.call(three[0], { taskId, waitSeconds: 5 }, person(n));
      expect(mine.content?.[0]?.text).toContain(`"person ${n}"`);
      const foreign = await client.call(three[0], { taskId, waitSeconds: 5 }, person(n + 1));
      expect(foreign.structuredContent).toMatchObject({ error: { code: "unknown_task" } });
    }),
  );
});

test("a wait does not tell a stranger by its length that there is a task", async () => {
  const { tasks } = startTasks({ scope: undefined as never });
  gatedTool(tasks, "work");
  const client = await openEntry(tasks);
  const taskId = await start(client, "work", {}, as("ada"));
  // Both are answered without any wait: the test would run into its time limit.
  for (const id of [taskId, unknown]) {
    const result = await client.call(three[0], { taskId: id, waitSeconds: 25 }, as("eve"));
    expect(result.structuredContent).toMatchObject({ error: { code: "unknown_task" } });
  }
  await client.call(three[2], { taskId }, as("ada"));
});
