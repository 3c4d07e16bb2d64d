import { describe, expect, test, vi } from "vitest";

import { startEngine } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { accepted, needsOk, question } from "./support/questions.ts";
import type { DetailedTask, InputRequest, TaskHandle, TaskLifecycle } from "../src/index.ts";

async function newTask(options: Parameters<typeof startEngine>[0] = {}): Promise<{
  readonly lifecycle: TaskLifecycle;
  readonly task: TaskHandle;
  /** The wire keys of the open questions. */
  readonly open: () => Promise<string[]>;
}> {
  const { lifecycle } = startEngine(options);
  const { taskId } = await lifecycle.createTask();
  const open = async (): Promise<string[]> => Object.keys(requestsOf(await lifecycle.getTask(taskId)));
  return { lifecycle, task: lifecycle.handle(taskId), open };
}

function requestsOf(task: DetailedTask): { readonly [key: string]: InputRequest } {
  return task.status === "input_required" ? task.inputRequests : {};
}

async function opened(open: () => Promise<string[]>, count: number): Promise<string[]> {
  await vi.waitFor(async () => expect(await open()).toHaveLength(count));
  return open();
}

describe("answers (P26)", () => {
  test("a part of the answers leaves the task waiting for the rest", async () => {
    const { lifecycle, open, task } = await newTask();
    const asking = task.requestInput({ a: question("A?"), b: question("B?") });
    expect(await opened(open, 2)).toEqual(["a", "b"]);
    await lifecycle.updateTask(task.taskId, { a: accepted({ n: 1 }) });
    expect(await lifecycle.getTask(task.taskId)).toMatchObject({ status: "input_required" });
    expect(await open()).toEqual(["b"]);
    await lifecycle.updateTask(task.taskId, { b: accepted({ n: 2 }) });
    expect(await asking).toEqual({ a: accepted({ n: 1 }), b: accepted({ n: 2 }) });
    expect(await lifecycle.getTask(task.taskId)).toMatchObject({ status: "working" });
  });

  test("the first answer wins; a later one and an unknown key are acknowledged and change nothing", async () => {
    const { lifecycle, open, task } = await newTask();
    const asking = task.requestInput({ a: question(), b: question() });
    await opened(open, 2);
    await lifecycle.updateTask(task.taskId, { a: accepted({ n: 1 }) });
    await lifecycle.updateTask(task.taskId, { a: accepted({ n: 2 }), never: accepted() });
    await lifecycle.updateTask(task.taskId, { b: accepted() });
    expect(await asking).toEqual({ a: accepted({ n: 1 }), b: accepted() });
  });

  test("two clients that answer everything at once deliver each key once", async () => {
    const { lifecycle, open, task } = await newTask();
    const asking = task.requestInput({ a: question(), b: question() });
    await opened(open, 2);
    const update = (by: string): Promise<readonly string[]> =>
      lifecycle.updateTask(task.taskId, { a: accepted({ by }), b: accepted({ by }) });
    // Each client is told which of its answers were taken.
    expect(await Promise.all([update("first"), update("second")])).toEqual([["a", "b"], []]);
    expect(await asking).toEqual({ a: accepted({ by: "first" }), b: accepted({ by: "first" }) });
    expect(await task.resumeInput()).toEqual({});
  });

  // CASES part 2, engine: "parallel requestInput throws".
  test("several rounds may be open at once, and each gets its own answers", async () => {
    const { lifecycle, open, task } = await newTask();
    const first = task.requestInput({ a: question("A?") });
    const second = task.requestInput({ b: question("B?"), c: question("C?") });
    await opened(open, 3);
    await lifecycle.updateTask(task.taskId, { c: accepted({ c: 1 }), a: accepted({ a: 1 }) });
    expect(await first).toEqual({ a: accepted({ a: 1 }) });
    await lifecycle.updateTask(task.taskId, { b: accepted({ b: 1 }) });
    expect(await second).toEqual({ b: accepted({ b: 1 }), c: accepted({ c: 1 }) });
  });

  test("decline and cancel are delivered as they are, without content (P28)", async () => {
    const { lifecycle, open, task } = await newTask({ validateAnswer: needsOk });
    const asking = task.requestInput({ a: question(), b: question() });
    await opened(open, 2);
    await lifecycle.updateTask(task.taskId, { a: { action: "decline" }, b: { action: "cancel" } });
    expect(await asking).toEqual({ a: { action: "decline" }, b: { action: "cancel" } });
  });
});

describe("keys (P27)", () => {
  test("the same question under the same key is one question, with one answer for all who ask", async () => {
    const { lifecycle, open, task } = await newTask();
    const asking = [task.requestInput({ a: question() }), task.requestInput({ a: question() })];
    await opened(open, 1);
    await lifecycle.updateTask(task.taskId, { a: accepted({ n: 1 }) });
    expect(await Promise.all(asking)).toEqual([{ a: accepted({ n: 1 }) }, { a: accepted({ n: 1 }) }]);
    expect(await task.requestInput({ a: question() }), "asked again, later").toEqual({
      a: accepted({ n: 1 }),
    });
    expect(await open()).toEqual([]);
  });

  test("another question under a used key is refused, and nothing is asked", async () => {
    const { open, task } = await newTask();
    void task.requestInput({ a: question("A?") });
    await opened(open, 1);
    expect(await codeOf(task.requestInput({ b: question(), a: question("Not A?") }))).toBe(
      "input_key_reused",
    );
    expect(await open()).toEqual(["a"]);
  });

  test("the key of a repeated question cannot be taken by the handler", async () => {
    const { lifecycle, open, task } = await newTask({ validateAnswer: needsOk });
    void task.requestInput({ a: question() });
    await opened(open, 1);
    await lifecycle.updateTask(task.taskId, { a: accepted() });
    const [fresh = ""] = await open();
    expect(fresh).not.toBe("a");
    expect(await codeOf(task.requestInput({ [fresh]: question() }))).toBe("input_key_reused");
  });

  test.each(["__proto__", "constructor", "7", "0", "toString", " ", "a\u0000b", "é", "x".repeat(256)])(
    "%j is an ordinary key",
    async (key) => {
      const { lifecycle, open, task } = await newTask({ validateAnswer: needsOk });
      const keyed = <Value>(value: Value): { [name: string]: Value } => Object.fromEntries([[key, value]]);
      const asking = task.requestInput(keyed(question()));
      expect(await opened(open, 1)).toEqual([key]);
      await lifecycle.updateTask(task.taskId, keyed({ action: "accept" }));
      const [fresh = ""] = await opened(open, 1);
      await lifecycle.updateTask(task.taskId, Object.fromEntries([[fresh, accepted({ ok: true })]]));
      const answers = await asking;
      expect(Object.entries(answers)).toEqual([[key, accepted({ ok: true })]]);
    },
  );

  test("an empty key and an overlong key are refused, and nothing is asked", async () => {
    const { open, task } = await newTask();
    expect(await codeOf(task.requestInput({ "": question() }))).toBe("invalid_json");
    expect(await codeOf(task.requestInput({ ["x".repeat(257)]: question() }))).toBe("invalid_json");
    expect(await open()).toEqual([]);
  });
});

// CASES part 2, engine: "elicitation answer not checked against requestedSchema".
describe("a bad answer (P28)", () => {
  test("is acknowledged, the question comes again under a fresh key with the reason, the handler waits on", async () => {
    const { lifecycle, open, task } = await newTask({ validateAnswer: needsOk });
    const asking = task.requestInput({ size: question("Which size?") });
    await opened(open, 1);
    await lifecycle.updateTask(task.taskId, { size: accepted({ ok: "yes" }) });
    const requests = requestsOf(await lifecycle.getTask(task.taskId));
    const [[fresh, request] = ["", question()]] = Object.entries(requests);
    expect(fresh).not.toBe("size");
    expect(request.params?.["message"]).toMatch(/^Which size\?[^]*ok must be true/);
    expect(request.params?.["requestedSchema"]).toEqual(question().params?.["requestedSchema"]);
    await lifecycle.updateTask(task.taskId, { size: accepted({ ok: true }) });
    expect(await open(), "the old key answers nothing any more").toEqual([fresh]);
    await lifecycle.updateTask(task.taskId, { [fresh]: accepted({ ok: true }) });
    expect(await asking).toEqual({ size: accepted({ ok: true }) });
  });

  test("leaves the good answers of the same update in place", async () => {
    const { lifecycle, open, task } = await newTask({ validateAnswer: needsOk });
    const asking = task.requestInput({ good: question(), bad: question(), odd: question() });
    await opened(open, 3);
    const update = { bad: accepted(), good: accepted({ ok: true }), odd: "no object" };
    await lifecycle.updateTask(task.taskId, update);
    const again = await opened(open, 2);
    expect(again.join()).toMatch(/^(?:bad~.*,odd~|odd~.*,bad~)/);
    await lifecycle.updateTask(
      task.taskId,
      Object.fromEntries(again.map((key) => [key, { action: "decline" }])),
    );
    expect(await asking).toMatchObject({ good: accepted({ ok: true }), bad: { action: "decline" } });
  });

  test.each([null, 5, "text", [], true])("includes %j: what is no object is no answer", async (entry) => {
    const { lifecycle, open, task } = await newTask();
    void task.requestInput({ a: question() });
    await opened(open, 1);
    await lifecycle.updateTask(task.taskId, { a: entry });
    const [fresh = ""] = await open();
    expect(fresh).toMatch(/^a~/);
  });

  test("includes an entry that could not even be read", async () => {
    const { lifecycle, open, task } = await newTask();
    void task.requestInput({ a: question() });
    await opened(open, 1);
    await lifecycle.updateTask(task.taskId, {}, { malformedKeys: ["a", "unknown"] });
    expect((await open())[0]).toMatch(/^a~/);
  });

  test("is asked again three times under keys never used before; the fourth gives the handler invalid_input_response", async () => {
    // Ids with a common beginning, as time-ordered ids have: a fresh key must be fresh all the same.
    let ids = 0;
    const { lifecycle, open, task } = await newTask({
      validateAnswer: needsOk,
      randomId: () => `id-with-a-common-start-${(ids += 1)}`,
    });
    const asking = task.requestInput({ a: question("Go?") });
    const wireKeys: string[] = [];
    for (let bad = 1; bad <= 4; bad += 1) {
      const [key = ""] = await opened(open, 1);
      wireKeys.push(key);
      await lifecycle.updateTask(task.taskId, { [key]: accepted() });
    }
    expect(await codeOf(asking)).toBe("invalid_input_response");
    expect(new Set(wireKeys).size).toBe(4);
    expect(await open()).toEqual([]);
    expect(await lifecycle.getTask(task.taskId)).toMatchObject({ status: "working" });
  });

  test("says the last reason alone when it is asked again and again", async () => {
    let judged = 0;
    const validateAnswer = (): string => `reason ${(judged += 1)}.`;
    const { lifecycle, open, task } = await newTask({ validateAnswer });
    void task.requestInput({ a: question("Go?") });
    for (let bad = 1; bad <= 2; bad += 1) {
      const [key = ""] = await opened(open, 1);
      await lifecycle.updateTask(task.taskId, { [key]: accepted() });
    }
    const [request] = Object.values(requestsOf(await lifecycle.getTask(task.taskId)));
    expect(request?.params?.["message"]).toContain("reason 2.");
    expect(request?.params?.["message"]).not.toContain("reason 1.");
  });
});
