import { describe, expect, test } from "vitest";

import {
  assertClaim,
  canLease,
  isClaimable,
  LeaseDeadlines,
  MemoryTaskStore,
  newLease,
  type TaskRecord,
  type TaskStore,
} from "../src/index.ts";
import { bareRecord } from "./support/records.ts";

// The rules of claim and renew are checked by the suite; here is what it cannot see.

const lease = { owner: "owner", token: "token", durationMs: 10 };

describe("canLease", () => {
  test.each<[string, object, boolean]>([
    ["both methods", { claim() {}, renew() {} }, true],
    ["claim alone", { claim() {} }, false],
    ["renew alone", { renew() {} }, false],
    ["neither", {}, false],
    ["fields that are no methods", { claim: true, renew: true }, false],
  ])("%s", (_case, methods, expected) => {
    expect(canLease(methods as TaskStore)).toBe(expected);
  });
});

describe("LeaseDeadlines", () => {
  test("finished tasks have no entry, however they became terminal", () => {
    const deadlines = new LeaseDeadlines();
    deadlines.created(bareRecord({ taskId: "born finished", status: "failed" }), 0);
    deadlines.created(bareRecord({ lease }), 0);
    expect(deadlines.size).toBe(1);
    deadlines.updated(bareRecord({ status: "completed" }), { status: "completed", lease: undefined }, 5);
    expect(deadlines.size).toBe(0);
  });

  test("a lease has lapsed at its deadline, not before", () => {
    const deadlines = new LeaseDeadlines();
    deadlines.created(bareRecord({ lease }), 100);
    expect([...deadlines.lapsed(109)]).toEqual([]);
    expect([...deadlines.lapsed(110)]).toEqual(["task-1"]);
    deadlines.renewed("task-1", 50, 110);
    expect([...deadlines.lapsed(159)]).toEqual([]);
    expect([...deadlines.lapsed(160)]).toEqual(["task-1"]);
  });

  test("what an exclusive store finds when it opens has lapsed", () => {
    const deadlines = new LeaseDeadlines();
    deadlines.reopened(bareRecord({ lease }));
    deadlines.reopened(bareRecord({ taskId: "finished", status: "completed" }));
    expect([...deadlines.lapsed(0)]).toEqual(["task-1"]);
  });

  test("a task that is taken while the walk goes on is not met again, nor is one that was deleted", () => {
    const deadlines = new LeaseDeadlines();
    for (const taskId of ["a", "b", "c"]) deadlines.created(bareRecord({ taskId }), 0);
    const met: string[] = [];
    for (const taskId of deadlines.lapsed(0, ["a", "a", "b", "unknown", "c"])) {
      met.push(taskId);
      deadlines.renewed(taskId, 10, 0);
      deadlines.deleted("b");
    }
    expect(met).toEqual(["a", "c"]);
  });
});

test("a claim's own lease is frozen, and no two have one token", () => {
  const leases = Array.from({ length: 100 }, () => newLease("owner", 30_000));
  expect(new Set(leases.map(({ token }) => token)).size).toBe(100);
  expect(leases.every((each) => Object.isFrozen(each))).toBe(true);
});

test.each([undefined, null, 7])("an owner of %s is a TypeError", (owner) => {
  expect(() => assertClaim(owner as never, 30_000, { limit: 1 })).toThrow(TypeError);
});

test("tools and ids are both asked for", () => {
  const task = bareRecord({ work: { tool: "render" } });
  expect(isClaimable(task, { limit: 1, tools: ["render"], taskIds: ["task-1"] })).toBe(true);
  expect(isClaimable(task, { limit: 1, tools: ["render"], taskIds: ["task-2"] })).toBe(false);
  expect(isClaimable(task, { limit: 1, tools: ["crawl"], taskIds: ["task-1"] })).toBe(false);
});

describe("MemoryTaskStore", () => {
  test("a claim looks at open tasks alone: finished ones cost it nothing", async () => {
    const store = new MemoryTaskStore();
    for (let index = 0; index < 20_000; index += 1) {
      await store.create(
        bareRecord({ taskId: `finished-${index}`, status: "completed", finishedBy: "token" }),
      );
    }
    await store.create(bareRecord());
    const beganAtMs = performance.now();
    for (let round = 0; round < 1_000; round += 1) await store.claim("owner", 30_000, { limit: 10 });
    // A thousand scans of 20,000 records take seconds; a thousand looks at one take a millisecond or two.
    expect(performance.now() - beganAtMs).toBeLessThan(500);
  });

  test("a record as large as the limit allows can be claimed, so that somebody can end it", async () => {
    const store = new MemoryTaskStore({ maxRecordBytes: 1_000 });
    await store.create(bareRecord({ data: "x".repeat(800) }));
    const [claimed] = await store.claim("o".repeat(200), 30_000, { limit: 1 });
    expect(claimed).toMatchObject({ version: 8, lease: { durationMs: 30_000 } });
    await store.update("task-1", { status: "cancelled", lease: undefined, data: undefined }, 8);
  });

  test("a swept task leaves nothing behind that a claim could take", async () => {
    let nowMs = 0;
    const store = new MemoryTaskStore({ now: () => nowMs });
    await store.create(bareRecord({ ttlMs: 10, lease }));
    nowMs = 10;
    await store.sweep();
    expect(await store.claim("owner", 30_000, { limit: 1 })).toEqual([]);
    await store.create(bareRecord());
    expect(await store.claim("owner", 30_000, { limit: 1 })).toHaveLength(1);
  });

  test("a watch listener that claims within a claim takes what is left, once", async () => {
    const store = new MemoryTaskStore();
    for (const taskId of ["a", "b", "c"]) await store.create(bareRecord({ taskId }));
    const nested: Promise<TaskRecord[]>[] = [];
    await store.watch("a", () => nested.push(store.claim("inner", 30_000, { limit: 1 })));
    const outer = await store.claim("outer", 30_000, { limit: 3 });
    const inner = (await Promise.all(nested)).flat();
    const ids = [...outer, ...inner].map(({ taskId }) => taskId);
    expect(ids.toSorted()).toEqual(["a", "b", "c"]);
    for (const claimed of [...outer, ...inner]) expect(await store.get(claimed.taskId)).toEqual(claimed);
  });
});
