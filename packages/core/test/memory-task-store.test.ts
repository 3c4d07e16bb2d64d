import { describe, expect, test, vi } from "vitest";

import { MemoryTaskStore, type TaskRecord } from "../src/index.ts";

// What every store promises is in conformance.test.ts; here is what is true of this one alone.

function record(fields: Partial<TaskRecord> = {}): TaskRecord {
  return {
    taskId: "task-1",
    version: 7,
    status: "working",
    createdAt: "2026-01-01T00:00:00.000Z",
    lastUpdatedAt: "2026-01-01T00:00:00.000Z",
    ttlMs: null,
    attempt: 1,
    crashes: 0,
    retentionMs: null,
    ...fields,
  };
}

describe("options", () => {
  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    "maxRecordBytes %s is a RangeError",
    (maxRecordBytes) => {
      expect(() => new MemoryTaskStore({ maxRecordBytes })).toThrow(RangeError);
    },
  );

  test("maxRecordBytes is the limit of the suite's size rules", async () => {
    const store = new MemoryTaskStore({ maxRecordBytes: 1_000 });
    const large = record({ data: "x".repeat(1_000) });
    await expect(store.create(large)).rejects.toMatchObject({
      code: "record_too_large",
      partial: { maxBytes: 1_000 },
    });
  });

  test("what was replaced does not count against maxRecordBytes, however often a task is written", async () => {
    const store = new MemoryTaskStore({ maxRecordBytes: 1_000 });
    await store.create(record());
    const writeMessages = async (from: number, units: number): Promise<void> => {
      for (let version = from; version < from + 20; version += 1)
        await store.update("task-1", { statusMessage: "x".repeat(units) }, version);
    };
    await writeMessages(7, 500);
    await expect(writeMessages(27, 1_000)).rejects.toMatchObject({ code: "record_too_large" });
    await writeMessages(27, 500);
  });
});

describe("memory", () => {
  test("size counts an expired record until a sweep deletes it (P23)", async () => {
    let nowMs = 0;
    const store = new MemoryTaskStore({ now: () => nowMs });
    for (let index = 0; index < 100; index += 1)
      await store.create(record({ taskId: `task-${index}`, ttlMs: 10 }));
    nowMs = 10;
    expect(store.size).toBe(100);
    await store.sweep();
    expect(store.size).toBe(0);
  });

  test("close() lets go of every record", async () => {
    const store = new MemoryTaskStore();
    await store.create(record());
    await store.close();
    expect(store.size).toBe(0);
  });

  test("records are frozen, and a read hands out the same object without a copy", async () => {
    const store = new MemoryTaskStore();
    await store.create(record({ result: { content: [{ type: "text", text: "large" }] } }));
    const first = await store.get("task-1");
    expect(first).toBe(await store.get("task-1"));
    expect(Object.isFrozen(first?.result?.["content"])).toBe(true);
  });

  test("an update shares the fields it does not name with the record before it", async () => {
    const store = new MemoryTaskStore();
    await store.create(record({ result: { content: [] } }));
    const before = await store.get("task-1");
    await store.update("task-1", { statusMessage: "done" }, 7);
    expect((await store.get("task-1"))?.result).toBe(before?.result);
  });
});

describe("values that are not JSON", () => {
  test.each([
    ["a BigInt", 1n],
    ["a Date", new Date(0)],
    ["a function", () => undefined],
  ])("create() with %s rejects with invalid_json, and other tasks go on", async (_kind, value) => {
    const store = new MemoryTaskStore();
    const poisoned = record({ data: { value } as never });
    await expect(store.create(poisoned)).rejects.toMatchObject({ code: "invalid_json" });
    expect(await store.get("task-1")).toBeUndefined();
    await store.create(record({ taskId: "task-2" }));
    await store.update("task-2", { statusMessage: "goes on" }, 7);
  });

  test.each([
    ["a BigInt", 1n],
    ["a function", () => undefined],
    ["NaN", Number.NaN],
  ])(
    "a whole field of %s is refused with invalid_json, in create() and in update()",
    async (_kind, value) => {
      const store = new MemoryTaskStore();
      await store.create(record());
      const poisoned = record({ taskId: "task-2", data: value as never });
      await expect(store.create(poisoned)).rejects.toMatchObject({ code: "invalid_json" });
      const patch = { data: value as never };
      await expect(store.update("task-1", patch, 7)).rejects.toMatchObject({ code: "invalid_json" });
      expect(await store.get("task-2")).toBeUndefined();
      expect(await store.get("task-1")).toEqual(record());
    },
  );

  test("-0 is 0, as it is in every store that writes text, at the top of a field too", async () => {
    const store = new MemoryTaskStore();
    await store.create(record({ data: -0 }));
    expect((await store.get("task-1"))?.["data"]).toBe(0);
    await store.update("task-1", { data: -0 }, 7);
    expect((await store.get("task-1"))?.["data"]).toBe(0);
  });

  test("a field of undefined in create() is a field that is absent", async () => {
    const store = new MemoryTaskStore();
    await store.create({ ...record(), statusMessage: undefined } as never);
    expect(await store.get("task-1")).toEqual(record());
    expect(Object.keys((await store.get("task-1")) ?? {})).not.toContain("statusMessage");
  });
});

test("a watch listener that throws fails no write: onError gets the error", async () => {
  const onError = vi.fn<(error: unknown) => void>();
  const store = new MemoryTaskStore({ onError });
  await store.create(record());
  const fault = new Error("listener");
  await store.watch("task-1", () => {
    throw fault;
  });
  expect(await store.update("task-1", { statusMessage: "written" }, 7)).toBe(8);
  expect(onError).toHaveBeenCalledExactlyOnceWith(fault);
});

test("is exclusive, and disposable", async () => {
  await using store = new MemoryTaskStore();
  expect(store.exclusive).toBe(true);
});
