import { describe, expect, test } from "vitest";

import { openEntry, start, until } from "./support/entries.ts";
import { startTasks } from "./support/started-tasks.ts";
import { gatedTool } from "./support/tools.ts";

const get = "durable_task_get";

function sizeOf(result: object): number {
  return JSON.stringify(result, (key, value: unknown) => (key === "_meta" ? undefined : value)).length;
}

describe("P70: polls are cheap", () => {
  test("a working reply is below 600 characters, whatever the handler says", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const started = await client.call("work");
    expect(sizeOf(started)).toBeLessThan(600);
    const taskId = String(started.structuredContent?.["taskId"]);
    for (const message of [
      "reading",
      "x".repeat(100_000),
      '"\\\n'.repeat(500),
      "…".repeat(500),
      "💥".repeat(500),
    ]) {
      await tool.runs[0]?.progress({ message, done: 123_456.789, total: 9_999_999 });
      expect(sizeOf(await client.call(get, { taskId }))).toBeLessThan(600);
    }
    expect(sizeOf(await client.call("durable_task_cancel", { taskId }))).toBeLessThan(700);
  });

  test("1,000 polls of unchanged work are all the same, tiny, and one or two reads each", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 60_000 });
    const tool = gatedTool(tasks, "work");
    const client = await openEntry(tasks);
    const taskId = await start(client, "work");
    await tool.runs[0]?.progress({ message: "reading", done: 1, total: 3 });
    const before = store.calls.length;
    const first = JSON.stringify(await client.call(get, { taskId }));
    let sent = 0;
    for (let poll = 1; poll < 1_000; poll += 1) {
      const reply = JSON.stringify(await client.call(get, { taskId }));
      expect(reply).toBe(first);
      sent += reply.length;
    }
    expect(sent).toBeLessThan(1_000_000);
    expect(store.calls.slice(before).every(({ method }) => method === "get")).toBe(true);
    expect(store.calls.length - before).toBeLessThanOrEqual(2_000);
  });

  test.for([
    ["a text", { content: [{ type: "text" as const, text: "x".repeat(1_000_000) }] }],
    ["structured content alone", { structuredContent: { long: "x".repeat(1_000_000) } }],
  ] as const)(
    "a large result is sent once for each ask, and with nothing but the ask for it: %s",
    async ([, result]) => {
      const { tasks } = startTasks();
      tasks.taskTool("large", { inlineBudgetMs: 0 }, () => result);
      const client = await openEntry(tasks);
      const taskId = await start(client, "large");
      expect(sizeOf(await until(client, taskId, "completed"))).toBeLessThan(1_002_000);
    },
  );
});
