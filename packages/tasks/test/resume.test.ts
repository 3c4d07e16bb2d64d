import { isLongJobsError } from "@longjobs/core";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";

import type { Tasks, ToolTask } from "../src/index.ts";
import { TaskHarness, type TaskHarnessOptions } from "../src/testing.ts";
import { text } from "./support/tools.ts";
import { gate } from "./support/turns.ts";

type Register = (tasks: Tasks) => void;

/** A harness that ends with its test, which fails if it has reported what nobody took. */
async function start(
  register: Register,
  options: Omit<TaskHarnessOptions, "register"> = {},
): Promise<TaskHarness> {
  const harness = await TaskHarness.start({ register, ...options });
  onTestFinished(async () => {
    await harness.close();
    expect(harness.errors, "reported in the background, and not expected").toEqual([]);
  });
  return harness;
}

async function taskOf(harness: TaskHarness, tool: string, args = {}): Promise<string> {
  const { taskId } = await harness.client().call(tool, args);
  if (taskId === undefined) throw new Error(`${tool} was answered inline.`);
  return taskId;
}

/** Never ends, and does not listen. */
function forever(): Promise<never> {
  return new Promise<never>(() => undefined);
}

/** One entry per run of a handler. */
interface Seen {
  readonly attempt: number;
  readonly checkpoint: unknown;
  readonly args: unknown;
  readonly scope: string | undefined;
  readonly meta: unknown;
}

function see(args: unknown, { attempt, checkpoint, scope, meta }: ToolTask): Seen {
  return { attempt, checkpoint, args, scope, meta };
}

describe("a tool that may begin again", () => {
  test("is run by the next process: same arguments, its checkpoint, the next attempt, the same scope (P20)", async () => {
    const seen: Seen[] = [];
    const inputSchema = z.object({ pages: z.number(), from: z.string().default("the front") });
    const harness = await start(
      (tasks) =>
        tasks.taskTool("copy", { inputSchema, onInterrupted: "resume" }, async (args, task) => {
          seen.push(see(args, task));
          if (task.attempt === 1) {
            await task.saveCheckpoint({ page: 3 });
            await forever();
          }
          return text(`copied from page ${(task.checkpoint as { page: number }).page}`);
        }),
      { scope: ({ authInfo }) => authInfo?.clientId ?? "nobody" },
    );
    const ada = harness.client({ authInfo: { clientId: "ada" } });
    const { taskId = "" } = await ada.call("copy", { pages: 9 }, { "example/trace": "t1" });
    await harness.restart();
    expect((await ada.result(taskId))["content"]).toEqual(text("copied from page 3").content);
    const args = { pages: 9, from: "the front" };
    expect(seen).toEqual([
      { attempt: 1, checkpoint: undefined, args, scope: "ada", meta: { "example/trace": "t1" } },
      { attempt: 2, checkpoint: { page: 3 }, args, scope: "ada", meta: {} },
    ]);
    await expect(harness.client({ authInfo: { clientId: "ben" } }).get(taskId)).rejects.toMatchObject({
      code: "unknown_task",
    });
  });

  test("gets what `prepare` made of the arguments as it is, and no schema is applied to it again", async () => {
    const seen: unknown[] = [];
    const inputSchema = z.object({ page: z.string() });
    const harness = await start((tasks) =>
      tasks.taskTool(
        "open",
        {
          inputSchema,
          onInterrupted: "resume",
          prepare: () => ({ arguments: { page: 7 as unknown as string } }),
        },
        async (args, task) => {
          seen.push(args);
          return task.attempt === 1 ? forever() : text("opened");
        },
      ),
    );
    const taskId = await taskOf(harness, "open", { page: "seven" });
    await harness.restart();
    await harness.client().result(taskId);
    expect(seen).toEqual([{ page: 7 }, { page: 7 }]);
  });

  test("is told in words when its schema does not take the old arguments any more", async () => {
    let inputSchema: z.ZodType = z.object({ city: z.string() });
    const run = vi.fn(forever);
    const harness = await start((tasks) =>
      tasks.taskTool("visit", { inputSchema, onInterrupted: "resume" }, run),
    );
    const taskId = await taskOf(harness, "visit", { city: "Rome" });
    inputSchema = z.object({ country: z.string() });
    await harness.restart();
    const result = await harness.client().result(taskId);
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "internal_error" } });
    expect(JSON.stringify(result)).toContain("country");
    expect(run).toHaveBeenCalledTimes(1);
  });

  test("gets the answer that was given before the crash, and asks nobody again (P27)", async () => {
    const harness = await start((tasks) =>
      tasks.taskTool("greet", { onInterrupted: "resume" }, async (_args, task) => {
        const name = await task.ask({ prompt: "Who?" });
        return task.attempt < 3 ? forever() : text(`Hello, ${name}!`);
      }),
    );
    const client = harness.client();
    const taskId = await taskOf(harness, "greet");
    await client.until(taskId, "input_required");
    await harness.restart();
    const asked = await client.until(taskId, "input_required");
    expect(Object.keys((asked as { inputRequests: object }).inputRequests)).toHaveLength(1);
    await client.answer(taskId, "Ada");
    await harness.restart();
    expect((await client.result(taskId))["content"]).toEqual(text("Hello, Ada!").content);
  });

  test("takes an answer that was given while no process lived", async () => {
    const harness = await start((tasks) =>
      tasks.taskTool("greet", { onInterrupted: "resume" }, async (_args, task) =>
        text(`Hello, ${await task.ask({ prompt: "Who?" })}!`),
      ),
    );
    const client = harness.client();
    const taskId = await taskOf(harness, "greet");
    await client.until(taskId, "input_required");
    harness.crash();
    const record = await harness.store.get(taskId);
    const [open] = Object.entries(record?.inputs ?? {});
    if (open === undefined) throw new Error("No question is open.");
    const [key, entry] = open;
    // What another instance on a shared store would have written.
    const answered = {
      ...entry,
      state: "answered" as const,
      answer: { action: "accept", content: { answer: "Ben" } },
    };
    await harness.store.update(
      taskId,
      { inputs: { [key]: answered }, status: "working" },
      record?.version ?? 0,
    );
    await harness.restart();
    expect((await client.result(taskId))["content"]).toEqual(text("Hello, Ben!").content);
  });

  test("is given up after maxAttempts crashes, and then never runs again (P19)", async () => {
    const run = vi.fn(forever);
    const harness = await start((tasks) =>
      tasks.taskTool("poison", { onInterrupted: "resume", maxAttempts: 2 }, run),
    );
    const taskId = await taskOf(harness, "poison");
    await harness.restart();
    expect(await harness.client().get(taskId)).toMatchObject({ status: "working" });
    await harness.restart();
    expect(await harness.client().get(taskId)).toMatchObject({
      status: "failed",
      error: { code: -32_603, data: { reason: "max_attempts", retryable: false, attempt: 2, crashes: 2 } },
    });
    await harness.restart();
    expect(run).toHaveBeenCalledTimes(2);
  });

  test("goes on after any number of shutdowns: they are no crashes", async () => {
    let shutdowns = 0;
    const harness = await start((tasks) =>
      tasks.taskTool("long", { onInterrupted: "resume", maxAttempts: 1 }, async (_args, task) => {
        if (task.attempt > 5) return text("done");
        await new Promise<never>((_resolve, reject) => {
          task.signal.addEventListener("abort", () => reject(task.signal.reason as Error));
        });
      }),
    );
    const taskId = await taskOf(harness, "long");
    for (; shutdowns < 5; shutdowns += 1) {
      await harness.close();
      await harness.restart();
    }
    expect((await harness.client().result(taskId))["content"]).toEqual(text("done").content);
    expect(await harness.store.get(taskId)).toMatchObject({ attempt: 6, crashes: 0 });
  });

  test("whose client asked for a cancel before the crash is not run again: it is cancelled (P13)", async () => {
    const run = vi.fn(forever);
    const harness = await start((tasks) => tasks.taskTool("long", { onInterrupted: "resume" }, run));
    const taskId = await taskOf(harness, "long");
    await harness.client().cancel(taskId);
    await harness.restart();
    expect(await harness.client().get(taskId)).toMatchObject({ status: "cancelled" });
    expect(run).toHaveBeenCalledTimes(1);
  });
});

test("a tool that does not say so is begun once: its task ends as interrupted, with what to do (P20)", async () => {
  const run = vi.fn(forever);
  const harness = await start((tasks) => tasks.taskTool("send", {}, run));
  const taskId = await taskOf(harness, "send");
  await harness.restart();
  expect(await harness.client().get(taskId)).toMatchObject({
    status: "failed",
    error: { code: -32_603, data: { reason: "interrupted", retryable: true, attempt: 1 } },
  });
  expect(run).toHaveBeenCalledTimes(1);
});

test("a tool that is not registered any more is left to other instances until orphanMaxMs", async () => {
  let registers = true;
  const harness = await start(
    (tasks) => {
      if (registers) tasks.taskTool("old", { onInterrupted: "resume" }, forever);
    },
    { orphanMaxMs: 3_600_000 },
  );
  const taskId = await taskOf(harness, "old");
  registers = false;
  await harness.restart();
  await harness.advance(3_500_000);
  expect(await harness.client().get(taskId)).toMatchObject({ status: "working" });
  await harness.advance(100_000);
  expect(await harness.client().get(taskId)).toMatchObject({
    status: "failed",
    error: { data: { reason: "interrupted" } },
  });
});

describe("a handler that takes too long", () => {
  test("is told so, and what it does after that is dropped, counted and reported", async () => {
    const late = gate();
    const reasons: unknown[] = [];
    const harness = await start((tasks) =>
      tasks.taskTool("slow", { maxRunMs: 60_000 }, async (_args, task) => {
        await late.opened;
        reasons.push(task.signal.reason);
        return text("too late");
      }),
    );
    const taskId = await taskOf(harness, "slow");
    await harness.advance(59_000);
    expect(await harness.client().get(taskId)).toMatchObject({ status: "working" });
    await harness.advance(2_000);
    const failed = { status: "failed", error: { code: -32_603, data: { code: "deadline_exceeded" } } };
    expect(await harness.client().get(taskId)).toMatchObject(failed);
    late.open();
    await vi.waitFor(() => expect(harness.tasks.stats().lateOutcomes).toBe(1));
    expect(reasons).toMatchObject([{ code: "deadline_exceeded" }]);
    expect(harness.errors.splice(0).map((error) => isLongJobsError(error, "deadline_exceeded"))).toEqual([
      true,
    ]);
    expect(await harness.client().get(taskId)).toMatchObject(failed);
  });

  test("is not, while it waits for a person (P29)", async () => {
    const harness = await start((tasks) =>
      tasks.taskTool("ask", { maxRunMs: 10_000 }, async (_args, task) =>
        text(await task.ask({ prompt: "Who?" })),
      ),
    );
    const taskId = await taskOf(harness, "ask");
    await harness.client().until(taskId, "input_required");
    await harness.advance(54 * 60_000);
    await harness.client().answer(taskId, "Ada");
    expect((await harness.client().result(taskId))["content"]).toEqual(text("Ada").content);
  });

  test("after a cancel, with cancelGraceMs: the task is cancelled without it (P14)", async () => {
    const late = gate();
    const harness = await start((tasks) =>
      tasks.taskTool("deaf", { cancelGraceMs: 5_000 }, async () => {
        await late.opened;
        return text("too late");
      }),
    );
    const taskId = await taskOf(harness, "deaf");
    await harness.client().cancel(taskId);
    await harness.advance(4_900);
    expect(await harness.client().get(taskId)).toMatchObject({ status: "working" });
    await harness.advance(200);
    expect(await harness.client().get(taskId)).toMatchObject({ status: "cancelled" });
    late.open();
    await vi.waitFor(() => expect(harness.tasks.stats().lateOutcomes).toBe(1));
  });
});
