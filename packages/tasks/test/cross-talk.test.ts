import { expect, test } from "vitest";
import { z } from "zod";

import { HttpDoor, resultOf } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { StdioDoor } from "./support/stdio-door.ts";
import { askName, greeter, text } from "./support/tools.ts";
import type { WireResult } from "./support/wire.ts";

test("P34: 200 interleaved calls over two servers on one Tasks: each answer reaches its caller", async () => {
  const { tasks } = startTasks();
  tasks.taskTool(
    "echo",
    {
      inputSchema: z.object({ n: z.number(), ask: z.boolean(), turns: z.number() }),
      inlineBudgetMs: 2,
      fallback: "wait",
    },
    async ({ n, ask, turns }, task) => {
      for (let turn = 0; turn < turns; turn += 1) {
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      if (!ask) return text(`${n}`);
      const { who } = await task.requestInput({ who: askName });
      return text(`${n} for ${(who as { content: { name: string } }).content.name}`);
    },
  );
  const doors = [new HttpDoor(tasks), new HttpDoor(tasks)] as const;

  async function call(n: number): Promise<void> {
    const [mine, other] = n % 2 === 0 ? doors : ([doors[1], doors[0]] as const);
    const ask = n % 3 === 0;
    const declare = ask || n % 5 !== 0;
    let result: WireResult = await mine.callTool("echo", { n, ask, turns: n % 17 }, { declare });
    if (result.taskId !== undefined) {
      const { taskId } = result;
      if (ask) {
        await mine.until(taskId, "input_required");
        await other.update(taskId, { who: { action: "accept", content: { name: `person ${n}` } } });
      }
      result = (await other.until(taskId, "completed")).result ?? {};
    }
    expect(result.content?.[0]?.text).toBe(ask ? `${n} for person ${n}` : `${n}`);
  }

  await Promise.all(Array.from({ length: 200 }, (_unused, n) => call(n)));
});

test("what one server accepted, another one answers for, and a stdio one too", async () => {
  const { tasks } = startTasks();
  greeter(tasks);
  const http = new HttpDoor(tasks);
  const stdio = await StdioDoor.serve(tasks);
  const taskId = await http.startTask("greet");
  await http.until(taskId, "input_required");
  await stdio.send("tasks/update", { taskId, inputResponses: { who: { action: "decline" } } });
  await http.until(taskId, "completed");
  expect((await stdio.send("tasks/get", { taskId })).result?.status).toBe("completed");
});

test("two engines over one store: an answer and a cancel reach the one that works", async () => {
  const first = startTasks();
  const second = startTasks({ store: first.store.inner });
  greeter(first.tasks);
  const http = new HttpDoor(first.tasks);
  const other = new HttpDoor(second.tasks);
  const answered = await http.startTask("greet");
  const cancelled = await http.startTask("greet");
  await http.until(answered, "input_required");
  await http.until(cancelled, "input_required");
  await other.update(answered, { who: { action: "accept", content: { name: "Ada" } } });
  await other.cancel(cancelled);
  expect((await other.until(answered, "completed")).result?.structuredContent).toMatchObject({
    who: { action: "accept" },
  });
  await other.until(cancelled, "cancelled");
});

test("one client's many ids on one stdio connection are kept apart", async () => {
  const { tasks } = startTasks();
  tasks.taskTool("echo", { inputSchema: z.object({ n: z.number() }), inlineBudgetMs: 0 }, ({ n }) =>
    text(`${n}`),
  );
  const door = await StdioDoor.serve(tasks);
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_unused, n) => {
      const { result } = await door.send("tools/call", { name: "echo", arguments: { n } });
      const taskId = result?.taskId;
      await expect
        .poll(async () => (await door.send("tasks/get", { taskId })).result?.status)
        .toBe("completed");
      return (await door.send("tasks/get", { taskId })).result?.result?.content?.[0]?.text;
    }),
  );
  expect(answers).toEqual(Array.from({ length: 100 }, (_unused, n) => `${n}`));
});

test("the result of a finished task is the same to the letter for every poll, and cannot be changed through one", async () => {
  const { tasks } = startTasks();
  tasks.taskTool("quick", { inlineBudgetMs: 0 }, () => ({
    content: [],
    structuredContent: { list: [1, 2] },
  }));
  const http = new HttpDoor(tasks);
  const taskId = await http.startTask("quick");
  await http.until(taskId, "completed");
  const polls = await Promise.all(Array.from({ length: 20 }, () => http.send("tasks/get", { taskId })));
  expect(new Set(polls.map((reply) => JSON.stringify(resultOf(reply)))).size).toBe(1);
});
