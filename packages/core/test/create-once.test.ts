import { describe, expect, test, vi } from "vitest";

import { isTaskId, MemoryTaskStore, type TaskStore } from "../src/index.ts";
import { idempotentTaskId } from "../src/idempotent-id.ts";
import { startClock } from "./support/clock.ts";
import { startEngine } from "./support/engine.ts";
import { codeOf, errorOf } from "./support/errors.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { createNew, findAgain, idOf, keyed } from "./support/keyed.ts";

type NewStore = (now?: () => number) => TaskStore;

const memoryStore: NewStore = (now) => new MemoryTaskStore(now === undefined ? {} : { now });
const stores: readonly (readonly [string, NewStore])[] = [
  ["the memory store", memoryStore],
  ["a store of five methods", (now) => fiveMethods(memoryStore(now))],
];

describe.each(stores)("an idempotency key on %s", (_name, newStore) => {
  test("P02: is one task: the first call creates it, and a repeat finds it as it is now", async () => {
    const { lifecycle } = startEngine({ store: newStore() });
    const attempt = await createNew(lifecycle);
    expect(attempt.recorded).toBe(true);
    const { taskId } = attempt;
    expect(await findAgain(lifecycle)).toMatchObject({
      task: { taskId, status: "working" },
      view: { taskId, status: "working" },
    });
    await attempt.complete({ content: [], structuredContent: { n: 1 } });
    const { task, view } = await findAgain(lifecycle);
    expect(task).toMatchObject({ taskId, status: "completed", result: { structuredContent: { n: 1 } } });
    expect(view).not.toHaveProperty("result");
    expect(await lifecycle.findOnce(keyed())).toEqual({ task, view });
  });

  test("P02: with another fingerprint is a conflict that changes nothing", async () => {
    const { lifecycle, store } = startEngine({ store: newStore() });
    const attempt = await createNew(lifecycle);
    const before = await store.get(attempt.taskId);
    const other = keyed({ fingerprint: "other" });
    expect(await errorOf(() => lifecycle.createOnce(other))).toMatchObject({
      code: "idempotency_conflict",
      param: "idempotencyKey",
      retryable: false,
      recoveryHint: expect.stringContaining("new idempotencyKey"),
    });
    expect(await codeOf(() => lifecycle.findOnce(other))).toBe("idempotency_conflict");
    expect(await store.get(attempt.taskId)).toEqual(before);
    await attempt.complete({});
    expect(await codeOf(() => lifecycle.createOnce(other))).toBe("idempotency_conflict");
  });

  test("P02: counts for one scope and one tool", async () => {
    const { lifecycle } = startEngine({ store: newStore() });
    const calls = [{}, { scope: "ada" }, { scope: "bob" }, { tool: "crop" }, { key: "k2" }];
    const attempts = await Promise.all(calls.map((call) => createNew(lifecycle, call)));
    expect(new Set(attempts.map(({ taskId }) => taskId)).size).toBe(5);
    expect(await codeOf(() => lifecycle.getTask(attempts[1]?.taskId ?? "", { scope: "bob" }))).toBe(
      "unknown_task",
    );
    for (const attempt of attempts) await attempt.complete({});
  });

  test("P03: of 50 parallel calls on two engines is one record, and 50 equal ids", async () => {
    const store = newStore();
    const creates = vi.spyOn(store, "create");
    const engines = [startEngine({ store }), startEngine({ store })] as const;
    const created = await Promise.all(
      Array.from({ length: 50 }, (_, nth) => engines[nth % 2 === 0 ? 0 : 1].lifecycle.createOnce(keyed())),
    );
    expect(new Set(created.map(idOf)).size).toBe(1);
    const attempts = created.flatMap(({ attempt }) => attempt ?? []);
    expect(attempts).toHaveLength(1);
    // The one is held, and the others are gone: nobody takes the task for left behind.
    expect(engines.reduce((sum, { lifecycle }) => sum + lifecycle.stats.attempts, 0)).toBe(1);
    expect(await engines[0].lifecycle.getTask(idOf(created[0] ?? {}))).toMatchObject({ status: "working" });
    const kept = creates.mock.calls.filter(
      (_call, nth) => creates.mock.settledResults[nth]?.type === "fulfilled",
    );
    expect(kept.map(([{ kind }]) => kind)).toEqual(["secret", undefined]);
    await attempts[0]?.complete({});
  });

  test("P23: gives the same id anew after the expiry, and nothing of the old task", async () => {
    const clock = startClock();
    const { lifecycle } = startEngine({ store: newStore(clock.now), now: clock.now, sweepIntervalMs: null });
    const first = await createNew(lifecycle);
    await first.complete({ content: [] });
    const { ttlMs } = await lifecycle.getTask(first.taskId);
    clock.advance((ttlMs ?? 0) - 1);
    expect((await findAgain(lifecycle)).task).toMatchObject({ status: "completed" });
    clock.advance(1);
    expect(await lifecycle.findOnce(keyed())).toBeUndefined();
    const second = await createNew(lifecycle, { fingerprint: "other" });
    expect(second.taskId).toBe(first.taskId);
    expect(await lifecycle.getTask(first.taskId)).toMatchObject({ status: "working" });
    await second.complete({});
  });
});

describe("the id", () => {
  test("is a task id, and follows from secret, scope, tool and key alone", async () => {
    const secret = "a secret of at least 32 characters";
    const call = { scope: "ada", tool: "resize", key: "k1" };
    const taskId = await idempotentTaskId(secret, call);
    expect(taskId).toMatch(/^[0-9a-f]{64}$/);
    expect(isTaskId(taskId)).toBe(true);
    expect(await idempotentTaskId(secret, { ...call })).toBe(taskId);
    const others = [
      idempotentTaskId(`${secret}.`, call),
      idempotentTaskId(secret, { ...call, scope: undefined }),
      idempotentTaskId(secret, { ...call, scope: "null" }),
      idempotentTaskId(secret, { scope: undefined, tool: "ada", key: "resize" }),
      idempotentTaskId(secret, { ...call, tool: 'resize","k1' }),
      idempotentTaskId(secret, { ...call, key: "\uD800" }),
      idempotentTaskId(secret, { ...call, key: "\uDBFF" }),
    ];
    expect(new Set([taskId, ...(await Promise.all(others))]).size).toBe(others.length + 1);
  });

  test("is HMAC-SHA256 over [1, scope, tool, key] as canonical JSON, so that another version finds it", async () => {
    // printf '%s' '[1,null,"resize","k1"]' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
    expect(await idempotentTaskId("0123456789abcdef0123456789abcdef", { tool: "resize", key: "k1" })).toBe(
      "8a5388efbd2ec69fb2a4efad43ea9bd9cdd040f43e3fc1d94fb03b33926afdf3",
    );
  });
});

describe("what is refused", () => {
  test.each([
    ["an empty text", ""],
    ["257 characters", "x".repeat(257)],
    ["a number", 7],
    ["null", null],
    ["an array", ["k1"]],
  ])("a key that is %s, before the store is called", async (_kind, key) => {
    const { lifecycle, store } = startEngine();
    const calls = [vi.spyOn(store, "create"), vi.spyOn(store, "get")];
    const call = {
      work: { tool: "resize" },
      idempotency: { key: key as string, fingerprint: "f", param: "id" },
    };
    for (const method of ["createOnce", "findOnce"] as const) {
      expect(await errorOf(() => lifecycle[method](call))).toMatchObject({
        code: "invalid_request",
        param: "id",
        retryable: false,
      });
    }
    for (const spy of calls) expect(spy).not.toHaveBeenCalled();
  });

  test("a key of 256 characters is taken", async () => {
    const { lifecycle } = startEngine();
    await (await createNew(lifecycle, { key: "x".repeat(256) })).complete({});
  });

  test("a call without a fingerprint is a mistake of the program: every call would be a repeat", async () => {
    const { lifecycle } = startEngine();
    expect(await errorOf(() => lifecycle.createOnce(keyed({ fingerprint: "" })))).toBeInstanceOf(TypeError);
  });
});
