import type { ResultSpill, ResultToSpill, SpilledResult } from "@longjobs/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";

import { openEntry, start, until, words } from "./support/entries.ts";
import { HttpDoor } from "./support/http-door.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";

/** A place that keeps results in memory, and can be full. */
class Shelf implements ResultSpill {
  readonly kept = new Map<string, ResultToSpill>();
  full = false;

  async spill(result: ResultToSpill): Promise<SpilledResult> {
    if (this.full) throw new Error("The shelf is full.");
    const transferId = `shelf-${this.kept.size + 1}`;
    this.kept.set(transferId, result);
    const { bytes, mediaType: mimeType, name } = result;
    return { uri: `shelf:${transferId}`, transferId, name, mimeType, size: bytes.length, sha256: "5ha256" };
  }

  async discard({ transferId }: SpilledResult): Promise<void> {
    this.kept.delete(transferId);
  }
}

const large = "word ".repeat(1_000_000);

function wholeOf(shelf: Shelf): unknown {
  const [result] = shelf.kept.values();
  return JSON.parse(new TextDecoder().decode(result?.bytes));
}

describe("a result that is larger than maxInlineResultBytes (P70)", () => {
  test("becomes a file that belongs to its task, and is answered with how it begins, a link, its size and its digest", async () => {
    const shelf = new Shelf();
    const { tasks } = startTasks({ resultSpill: shelf, retentionMs: 3_600_000 });
    tasks.taskTool("export", { inlineBudgetMs: 0 }, () => ({
      ...text(large),
      structuredContent: { rows: 3 },
    }));
    const client = await openEntry(tasks);
    const taskId = await start(client, "export");
    const result = await until(client, taskId, "completed");
    expect(shelf.kept.size).toBe(1);
    const [kept] = shelf.kept.values();
    expect(kept).toMatchObject({ taskId, name: "export-result.json", mediaType: "application/json" });
    expect((kept?.untilMs ?? 0) - Date.now()).toBeGreaterThan(3_500_000);
    expect(wholeOf(shelf)).toMatchObject({ ...text(large), structuredContent: { rows: 3 } });
    const link = result.content?.find(({ type }) => type === "resource_link");
    expect(link).toMatchObject({
      uri: "shelf:shelf-1",
      size: kept?.bytes.length,
      description: "sha256 5ha256",
    });
    expect(words(result)).toMatch(/^The result has 50\d{5} bytes .* It begins:\nword word/);
    expect(words(result).length).toBeLessThan(1_300);
  });

  test("1,000 polls of 5 MB move less than 20 MB in all", async () => {
    const { tasks } = startTasks({ resultSpill: new Shelf() });
    tasks.taskTool("export", { inlineBudgetMs: 0 }, () => text(large));
    const door = new HttpDoor(tasks);
    const { message } = await door.send("tools/call", { name: "export", arguments: {} });
    const taskId = String(message.result?.["taskId"]);
    await expect.poll(async () => (await tasks.lifecycle.getTask(taskId)).status).toBe("completed");
    let bytes = 0;
    for (let poll = 0; poll < 1_000; poll += 1)
      bytes += JSON.stringify((await door.send("tasks/get", { taskId })).message).length;
    expect(bytes).toBeLessThan(20_000_000);
  });

  test("that was ready within the inline budget is a task all the same: a file needs one to belong to", async () => {
    const shelf = new Shelf();
    const { tasks } = startTasks({ resultSpill: shelf });
    tasks.taskTool("export", { inlineBudgetMs: 10_000 }, () => text(large));
    const client = await openEntry(tasks);
    const taskId = await start(client, "export");
    await until(client, taskId, "completed");
    expect([...shelf.kept.values()]).toMatchObject([{ taskId }]);
  });

  test("with which a handler completes its task itself is kept alike", async () => {
    const shelf = new Shelf();
    const { tasks } = startTasks({ resultSpill: shelf });
    tasks.taskTool("export", { inlineBudgetMs: 0 }, async (_args, task) => {
      await task.complete(text(large) as never);
    });
    const client = await openEntry(tasks);
    await until(client, await start(client, "export"), "completed");
    expect(wholeOf(shelf)).toMatchObject(text(large));
  });

  test("stays whole where the SDK checks the answer of the call against the output schema", async () => {
    const shelf = new Shelf();
    const { tasks } = startTasks({ resultSpill: shelf, maxInlineResultBytes: 100 });
    const rows = Array.from({ length: 100 }, (_, row) => row);
    const outputSchema = z.object({ rows: z.array(z.number()) });
    tasks.taskTool("export", { outputSchema, fallback: "wait" }, () => ({ structuredContent: { rows } }));
    const client = await openEntry(tasks);
    expect((await client.call("export")).structuredContent).toEqual({ rows });
    expect(shelf.kept.size).toBe(0);
  });
});

test("a result up to the limit, and an error of any size, stay in their task", async () => {
  const shelf = new Shelf();
  const { tasks } = startTasks({ resultSpill: shelf, maxInlineResultBytes: 1_000 });
  tasks.taskTool("small", { inlineBudgetMs: 0 }, () => text("x".repeat(900)));
  tasks.taskTool("wrong", { inlineBudgetMs: 0 }, () => ({ ...text("x".repeat(5_000)), isError: true }));
  const client = await openEntry(tasks);
  expect(words(await until(client, await start(client, "small"), "completed"))).toBe("x".repeat(900));
  expect(words(await until(client, await start(client, "wrong"), "completed"))).toBe("x".repeat(5_000));
  expect(shelf.kept.size).toBe(0);
});

test("a place that fails is reported, and the result stays in its task: nothing is lost", async () => {
  const shelf = new Shelf();
  shelf.full = true;
  const started = startTasks({ resultSpill: shelf, maxInlineResultBytes: 1_000 });
  started.tasks.taskTool("export", { inlineBudgetMs: 0 }, () => text("x".repeat(5_000)));
  const client = await openEntry(started.tasks);
  expect(words(await until(client, await start(client, "export"), "completed"))).toBe("x".repeat(5_000));
  expect(takeErrors(started)).toMatchObject([{ message: "The shelf is full." }]);
});

test("a file whose task ended otherwise is deleted", async () => {
  const shelf = new Shelf();
  const { tasks } = startTasks({ resultSpill: shelf, maxInlineResultBytes: 1_000 });
  tasks.taskTool("export", { inlineBudgetMs: 0 }, async (_args, task) => {
    await tasks.lifecycle.cancelTask(task.taskId, { atOnce: true });
    return text("x".repeat(5_000));
  });
  const client = await openEntry(tasks);
  const taskId = await start(client, "export");
  await until(client, taskId, "cancelled");
  await expect.poll(() => shelf.kept.size).toBe(0);
});

test("a result that comes after the run deadline leaves no file", async () => {
  const shelf = new Shelf();
  const late = gate();
  const started = startTasks({ resultSpill: shelf, maxInlineResultBytes: 1_000 });
  started.tasks.taskTool("export", { inlineBudgetMs: 0, maxRunMs: 20 }, async () => {
    await late.opened;
    return text("x".repeat(5_000));
  });
  const client = await openEntry(started.tasks);
  await until(client, await start(client, "export"), "failed");
  late.open();
  await expect.poll(() => started.tasks.stats().lateOutcomes).toBe(1);
  expect(shelf.kept.size).toBe(0);
  expect(takeErrors(started)).toMatchObject([{ code: "deadline_exceeded" }]);
});

test.each([0, -1, 1.5, "1"])("maxInlineResultBytes of %j is a RangeError", (maxInlineResultBytes) => {
  expect(() => startTasks({ maxInlineResultBytes: maxInlineResultBytes as number })).toThrow(RangeError);
});

test("resultSpill that is no place is a TypeError", () => {
  expect(() => startTasks({ resultSpill: {} as ResultSpill })).toThrow(TypeError);
});
