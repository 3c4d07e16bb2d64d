import { faultyTaskStore } from "@longjobs/conformance";
import { describe, expect, test, vi } from "vitest";

import { LongJobsError, MemoryTaskStore } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf, codedErrorOf, errorOf } from "./support/errors.ts";
import { orphanTask, type Orphan } from "./support/orphan.ts";
import { accepted, question } from "./support/questions.ts";

/** A task that was parked at the question `size` when its engine went away. */
function parkedByTheDead(): Promise<Orphan> {
  return orphanTask(async (task, store) => {
    void task.requestInput({ size: question("Which size?") });
    await vi.waitFor(async () => expect((await store.get(task.taskId))?.status).toBe("input_required"));
  });
}

// CASES part 2, engine: "acknowledged answer lost. Park on key k; restart; updateTask with the answer on the new process."
describe("an answer that was acknowledged is kept for whoever works on", () => {
  test("given to the new process while nobody works, it is read by the next attempt: resumeInput, once", async () => {
    const { store, taskId } = await parkedByTheDead();
    const { lifecycle } = startEngine({ store });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "input_required" });
    await lifecycle.updateTask(taskId, { size: accepted({ width: 3 }) });
    const task = await lifecycle.acquire(taskId);
    expect(task.attempt).toBe(2);
    expect(await task.resumeInput()).toEqual({ size: accepted({ width: 3 }) });
    expect(await task.resumeInput()).toEqual({});
  });

  test("or by asking again from the top: the same key, the stored answer, no second prompt (P27)", async () => {
    const { store, taskId } = await parkedByTheDead();
    const { lifecycle } = startEngine({ store });
    await lifecycle.updateTask(taskId, { size: accepted({ width: 3 }) });
    const task = await lifecycle.acquire(taskId);
    expect(await task.requestInput({ size: question("Which size?") })).toEqual({
      size: accepted({ width: 3 }),
    });
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
    expect(await task.resumeInput(), "delivered already").toEqual({});
  });

  test("asked again by the next attempt before the answer came, it is still one question (P27)", async () => {
    const { store, taskId } = await parkedByTheDead();
    const { lifecycle } = startEngine({ store });
    const task = await lifecycle.acquire(taskId);
    const asking = task.requestInput({ size: question("Which size?") });
    expect(await codeOf(task.requestInput({ size: question("Which colour?") }))).toBe("input_key_reused");
    const shown = await lifecycle.getTask(taskId);
    expect(shown).toMatchObject({
      status: "input_required",
      inputRequests: { size: question("Which size?") },
    });
    await lifecycle.updateTask(taskId, { size: accepted() });
    expect(await asking).toEqual({ size: accepted() });
  });

  test("it is still in the record after the interruption was noticed", async () => {
    const { store, taskId } = await parkedByTheDead();
    const { lifecycle } = startEngine({ store });
    await lifecycle.updateTask(taskId, { size: accepted({ width: 3 }) });
    expect(await lifecycle.endIfOrphan(taskId)).toMatchObject({ status: "failed" });
    expect((await store.get(taskId))?.inputs).toMatchObject({ size: { answer: accepted({ width: 3 }) } });
  });

  test("an answer that somebody waits for is not handed out by resumeInput too", async () => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const asking = task.requestInput({ a: question(), b: question() });
    await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
    await lifecycle.updateTask(taskId, { a: accepted() });
    expect(await task.resumeInput()).toEqual({});
    await lifecycle.updateTask(taskId, { b: accepted() });
    await asking;
  });
});

test("waiting 54 minutes for a person trips nothing (P29)", async () => {
  vi.useFakeTimers();
  const { lifecycle, store } = startEngine({ retentionMs: 60_000, leaseMs: 1_000 });
  const { taskId } = await lifecycle.createTask();
  const task = lifecycle.handle(taskId);
  const asking = task.requestInput({ a: question() });
  await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
  await vi.advanceTimersByTimeAsync(54 * 60_000);
  expect(task.signal.aborted).toBe(false);
  expect((await store.get(taskId))?.status).toBe("input_required");
  await lifecycle.updateTask(taskId, { a: accepted() });
  expect(await asking).toEqual({ a: accepted() });
});

test("a store that is away for a while ends no wait: the answer is delivered once it is back", async () => {
  vi.useFakeTimers();
  let away = false;
  const store = faultyTaskStore(new MemoryTaskStore(), {
    before: () => {
      if (away) throw new LongJobsError("store_unavailable", "The store is away.");
    },
  });
  const engine = startEngine({ store, waitPollMs: 100 });
  const { taskId } = await engine.lifecycle.createTask();
  const asking = engine.lifecycle.handle(taskId).requestInput({ a: question() });
  await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
  away = true;
  // Shorter than a lease: after that nobody may rely on it.
  await vi.advanceTimersByTimeAsync(25_000);
  away = false;
  expect(takeErrors(engine).length).toBeGreaterThan(100);
  await engine.lifecycle.updateTask(taskId, { a: accepted() });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await asking).toEqual({ a: accepted() });
});

describe("a question is refused before anything is written", () => {
  test("when the client of the call did not declare its kind", async () => {
    const { lifecycle, store } = startEngine();
    const client = { capabilities: { elicitation: { form: {} } } };
    const { taskId } = await lifecycle.createTask({ work: { tool: "t", client } });
    const task = lifecycle.handle(taskId);
    const before = await store.get(taskId);
    const url = { method: "elicitation/create", params: { mode: "url", message: "Pay", url: "https://x" } };
    const error = await codedErrorOf(task.requestInput({ a: url }));
    expect(error).toMatchObject({ code: "input_not_supported", param: "elicitation.url" });
    for (const method of ["sampling/createMessage", "roots/list", "tools/call", "__proto__"]) {
      expect(await codeOf(task.requestInput({ a: { method } }))).toBe("input_not_supported");
    }
    expect(await store.get(taskId)).toBe(before);
  });

  // CASES part 2, engine: "valid 2026-07-28 URL elicitation rejected": the engine asks for no elicitationId.
  test.each([
    [{ elicitation: {} }, { method: "elicitation/create", params: { message: "x" } }],
    [{ elicitation: { url: {} } }, { method: "elicitation/create", params: { mode: "url" } }],
    [{ sampling: {} }, { method: "sampling/createMessage" }],
    [{ roots: { listChanged: true } }, { method: "roots/list" }],
    [undefined, { method: "anything/at-all" }],
  ])("but with %j declared, %j is asked", async (capabilities, request) => {
    const { lifecycle, store } = startEngine();
    const client = capabilities === undefined ? {} : { capabilities };
    const { taskId } = await lifecycle.createTask({ work: { tool: "t", client } });
    void lifecycle.handle(taskId).requestInput({ a: request });
    await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
  });

  test("when it is malformed, has no method, or is no JSON (P11)", async () => {
    const { lifecycle } = startEngine({ validateRequest: () => "it has no url" });
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    expect(await errorOf(task.requestInput({ a: question() }))).toBeInstanceOf(TypeError);
    expect(await errorOf(task.requestInput({ a: {} as never }))).toBeInstanceOf(TypeError);
    const bigint = { method: "x", params: { n: 1n } } as never;
    expect(await codeOf(task.requestInput({ a: bigint }))).toBe("invalid_json");
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
  });
});

test("an answer that cannot be stored refuses the whole update with a coded error: nothing has changed", async () => {
  const { lifecycle, store } = startEngine();
  const { taskId } = await lifecycle.createTask();
  void lifecycle.handle(taskId).requestInput({ a: question(), b: question() });
  await vi.waitFor(async () => expect((await store.get(taskId))?.status).toBe("input_required"));
  const before = await store.get(taskId);
  const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`) as object;
  for (const bad of [deep, { n: 1n }, { x: "y".repeat(9 * 1024 * 1024) }]) {
    const code = await codeOf(lifecycle.updateTask(taskId, { a: bad, b: accepted() }));
    expect(code).toMatch(/^(?:invalid_json|record_too_large)$/);
    expect(await store.get(taskId)).toBe(before);
  }
});

test.each([null, undefined, 5, "text", [{ action: "accept" }]])(
  "an update with %j in place of the responses is refused with a coded error",
  async (responses) => {
    const { lifecycle, store } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const before = await store.get(taskId);
    expect(await codeOf(lifecycle.updateTask(taskId, responses as never))).toBe("invalid_json");
    expect(await store.get(taskId)).toBe(before);
  },
);

test("a question that is asked after the signal was aborted is refused at once: nothing is opened", async () => {
  const { lifecycle, store } = startEngine();
  const { taskId } = await lifecycle.createTask();
  const task = lifecycle.handle(taskId);
  await lifecycle.cancelTask(taskId);
  expect(await codeOf(task.requestInput({ a: question() }))).toBe("cancelled");
  expect((await store.get(taskId))?.inputs).toBeUndefined();
});
