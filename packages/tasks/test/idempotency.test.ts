import { describe, expect, test } from "vitest";
import { z } from "zod";

import type { Tasks, TaskToolConfig } from "../src/index.ts";
import { HttpDoor } from "./support/http-door.ts";
import { callingClients, refusalOf, taskClients2025, taskIdOf } from "./support/keyed-clients.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";

const args = { file: "a.png", size: { w: 1, h: 2 } };
const reordered = { size: { h: 2, w: 1 }, file: "a.png" };
const others = { file: "b.png", size: { w: 1, h: 2 } };

/** A tool that counts its runs, and ends when its gate opens. */
function resizer(tasks: Tasks, config: Pick<TaskToolConfig, "fallback" | "inlineBudgetMs"> = {}) {
  const end = gate();
  const runs: unknown[] = [];
  const inputSchema = z.object({ file: z.string(), size: z.object({ w: z.int(), h: z.int() }) });
  tasks.taskTool("resize", { inputSchema, inlineBudgetMs: 0, ...config }, async (given) => {
    runs.push(given);
    await end.opened;
    return text(`resized ${given.file}`);
  });
  return { runs, open: end.open };
}

describe.each([...callingClients, ...taskClients2025])("%s", (_name, open) => {
  test("P02: a repeat with equal arguments in another order is the same task and the same run", async () => {
    const { tasks } = startTasks();
    const { runs, open: end } = resizer(tasks);
    const client = await open(tasks);
    const taskId = taskIdOf(await client.call("resize", args, "k1"));
    expect(taskIdOf(await client.call("resize", reordered, "k1"))).toBe(taskId);
    expect(taskIdOf(await client.call("resize", args, "k2"))).not.toBe(taskId);
    await expect.poll(() => runs).toHaveLength(2);
    end();
    await new HttpDoor(tasks).until(taskId, "completed");
  });

  test("P02: other arguments under the key are a conflict, which starts nothing", async () => {
    const { tasks } = startTasks();
    const { runs, open: end } = resizer(tasks);
    const client = await open(tasks);
    const taskId = taskIdOf(await client.call("resize", args, "k1"));
    const refused = await client.call("resize", others, "k1");
    expect(refused.error?.code).toBe(-32_602);
    expect(refusalOf(refused)).toBe("idempotency_conflict");
    end();
    await new HttpDoor(tasks).until(taskId, "completed");
    expect(refusalOf(await client.call("resize", others, "k1"))).toBe("idempotency_conflict");
    expect(runs).toHaveLength(1);
  });

  test("P03: 50 parallel calls with one key are one run and 50 equal ids", async () => {
    const { tasks } = startTasks();
    const { runs, open: end } = resizer(tasks);
    const clients = [await open(tasks), await open(tasks)] as const;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, nth) => clients[nth % 2 === 0 ? 0 : 1].call("resize", args, "k1")),
    );
    const ids = new Set(answers.map(taskIdOf));
    expect(ids.size).toBe(1);
    expect(runs).toHaveLength(1);
    end();
    await new HttpDoor(tasks).until([...ids][0] ?? "", "completed");
  });

  test.for([
    ["an empty text", ""],
    ["257 characters", "x".repeat(257)],
    ["a number", 7],
    ["null", null],
  ] as const)("a key that is %s is refused, and nothing is started", async ([, key]) => {
    const { tasks, store } = startTasks();
    const { runs } = resizer(tasks);
    const refused = await (await open(tasks)).call("resize", args, key);
    expect(refused.error).toMatchObject({
      code: -32_602,
      data: { code: "invalid_request", param: "longjobs/idempotencyKey" },
    });
    expect(runs).toEqual([]);
    expect(store.calls).toEqual([]);
  });
});

describe.each(callingClients)("%s", (_name, open) => {
  test("a repeat after the end is answered with the result, as a call without a key is", async () => {
    const { tasks } = startTasks();
    const { runs, open: end } = resizer(tasks);
    const client = await open(tasks);
    const taskId = taskIdOf(await client.call("resize", args, "k1"));
    end();
    await new HttpDoor(tasks).until(taskId, "completed");
    const { result } = await client.call("resize", args, "k1");
    expect(result?.content).toEqual(text("resized a.png").content);
    expect(result).not.toHaveProperty("taskId");
    expect(runs).toHaveLength(1);
  });

  test("work that ends within the budget is answered inline, the first time and again", async () => {
    const { tasks } = startTasks();
    const { runs, open: end } = resizer(tasks, { inlineBudgetMs: 60_000 });
    end();
    const client = await open(tasks);
    for (let times = 0; times < 3; times += 1) {
      const { result } = await client.call("resize", args, "k1");
      expect(result?.content).toEqual(text("resized a.png").content);
    }
    expect(runs).toHaveLength(1);
  });
});

describe.each(taskClients2025)("%s", (_name, open) => {
  test("a repeat after the end is the task that has ended, whose result is fetched as always", async () => {
    const { tasks } = startTasks();
    const { open: end } = resizer(tasks);
    const client = await open(tasks);
    const taskId = taskIdOf(await client.call("resize", args, "k1"));
    end();
    await new HttpDoor(tasks).until(taskId, "completed");
    const { result } = await client.call("resize", args, "k1");
    expect(result).toMatchObject({ task: { taskId, status: "completed" } });
  });
});
