import { canLease, canWatch, isExclusive, MemoryTaskStore, type TaskRecord } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { faultyTaskStore, type StoreCall } from "../src/index.ts";
import { onlyFiveMethods } from "./support/five-methods.ts";

const record: TaskRecord = {
  taskId: "task-1",
  version: 7,
  status: "working",
  createdAt: "2026-01-01T00:00:00.000Z",
  lastUpdatedAt: "2026-01-01T00:00:00.000Z",
  ttlMs: null,
  attempt: 1,
  crashes: 0,
  retentionMs: null,
};

describe("faultyTaskStore", () => {
  test("a hook that throws before leaves the store as it was", async () => {
    const store = new MemoryTaskStore();
    const faulty = faultyTaskStore(store, { before: fail("create") });
    await expect(faulty.create(record)).rejects.toThrow("injected");
    expect(await store.get("task-1")).toBeUndefined();
  });

  test("a hook that throws after makes a committed write look failed", async () => {
    const store = new MemoryTaskStore();
    const faulty = faultyTaskStore(store, { after: fail("update") });
    await faulty.create(record);
    await expect(faulty.update("task-1", { statusMessage: "kept" }, 7)).rejects.toThrow("injected");
    expect(await store.get("task-1")).toMatchObject({ version: 8, statusMessage: "kept" });
  });

  test("a call says its method, its arguments and its number", async () => {
    const calls: StoreCall[] = [];
    const faulty = faultyTaskStore(new MemoryTaskStore(), { before: (call) => void calls.push(call) });
    await faulty.create(record);
    await faulty.update("task-1", { statusMessage: "one" }, 7);
    await faulty.update("task-1", { statusMessage: "two" }, 8);
    await faulty.sweep();
    expect(calls).toEqual([
      { method: "create", taskId: "task-1", record, count: 1 },
      { method: "update", taskId: "task-1", patch: { statusMessage: "one" }, expectedVersion: 7, count: 1 },
      { method: "update", taskId: "task-1", patch: { statusMessage: "two" }, expectedVersion: 8, count: 2 },
      { method: "sweep", count: 1 },
    ]);
  });

  test("a hook that waits lets a later call overtake", async () => {
    const store = new MemoryTaskStore();
    let release = (): void => undefined;
    const overtaken = new Promise<void>((resolve) => {
      release = resolve;
    });
    const faulty = faultyTaskStore(store, {
      before: ({ method, count }) => (method === "update" && count === 1 ? overtaken : undefined),
    });
    await faulty.create(record);
    const first = faulty.update("task-1", { statusMessage: "first" }, 7);
    await faulty.update("task-1", { statusMessage: "second" }, 7);
    release();
    await expect(first).rejects.toMatchObject({ code: "version_conflict" });
    expect(await store.get("task-1")).toMatchObject({ statusMessage: "second" });
  });

  test("a repeated write conflicts with itself, as one that a driver sends again", async () => {
    const store = new MemoryTaskStore();
    const faulty = faultyTaskStore(store, { repeat: ({ method }) => method === "update" });
    await faulty.create(record);
    await expect(faulty.update("task-1", { statusMessage: "once" }, 7)).rejects.toMatchObject({
      code: "version_conflict",
    });
    expect(await store.get("task-1")).toMatchObject({ version: 8, statusMessage: "once" });
  });

  test("claims and renewals pass through, and say what they were called with", async () => {
    const calls: StoreCall[] = [];
    const faulty = faultyTaskStore(new MemoryTaskStore(), { before: (call) => void calls.push(call) });
    if (!canLease(faulty)) throw new Error("The store inside can lease.");
    await faulty.create(record);
    const [claimed] = await faulty.claim("owner", 1_000, { limit: 1 });
    const leases = [{ taskId: "task-1", token: claimed?.lease?.token ?? "" }];
    expect(await faulty.renew(leases, 2_000)).toEqual([]);
    expect(calls.slice(1)).toEqual([
      { method: "claim", owner: "owner", leaseMs: 1_000, options: { limit: 1 }, count: 1 },
      { method: "renew", leases, leaseMs: 2_000, count: 1 },
    ]);
  });

  test("the optional capabilities are those of the store inside", () => {
    const whole = faultyTaskStore(new MemoryTaskStore(), {});
    expect([canWatch(whole), canLease(whole), isExclusive(whole)]).toEqual([true, true, true]);
    const bare = faultyTaskStore(onlyFiveMethods(whole), {});
    expect([canWatch(bare), canLease(bare), isExclusive(bare)]).toEqual([false, false, false]);
  });
});

function fail(method: StoreCall["method"]): (call: StoreCall) => void {
  return (call) => {
    if (call.method === method) throw new Error("injected");
  };
}
