import { describe, expect, test, vi } from "vitest";

import {
  LongJobsError,
  MemoryTaskStore,
  type DetailedTask,
  type TaskFeed,
  type TaskLifecycle,
} from "../src/index.ts";
import { startClock } from "./support/clock.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { accepted, question } from "./support/questions.ts";
import { countCalls, spiedStore, withLostHints } from "./support/spied-store.ts";

/** Takes until nothing may have changed. */
async function takeAll(feed: TaskFeed): Promise<DetailedTask[]> {
  const taken: DetailedTask[] = [];
  while (feed.hasChanges) {
    const task = await feed.take();
    if (task !== undefined) taken.push(task);
  }
  return taken;
}

function follow(lifecycle: TaskLifecycle, taskIds: readonly string[], scope?: string): Promise<TaskFeed> {
  return lifecycle.followTasks(taskIds, { scope, onChange: () => undefined });
}

describe("followTasks", () => {
  test("gives each task as it is, then as it changes, exactly as polling shows it, until it has ended", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask({ scope: "ann" });
    const task = lifecycle.handle(taskId);
    const shown = () => lifecycle.getTask(taskId, { scope: "ann" });
    const feed = await follow(lifecycle, [taskId], "ann");
    expect(await takeAll(feed)).toEqual([await shown()]);
    expect(feed.hasChanges).toBe(false);
    await task.progress("half");
    expect(await takeAll(feed)).toEqual([await shown()]);
    const asking = task.requestInput({ a: question() });
    await expect.poll(() => feed.hasChanges).toBe(true);
    expect(await takeAll(feed)).toEqual([await shown()]);
    await lifecycle.updateTask(taskId, { a: accepted() }, { scope: "ann" });
    await asking;
    await task.complete({ done: true });
    expect(feed.isOver).toBe(false);
    const last = await takeAll(feed);
    expect(feed.isOver).toBe(true);
    expect(last).toEqual([await shown()]);
    expect(last).toMatchObject([{ status: "completed", result: { done: true } }]);
    expect(lifecycle.stats.watchedTasks, "an ended task is not listened to").toBe(0);
  });

  test("what changes between two takes is one state, the latest, and a second question of one millisecond is not missed", async () => {
    const { now } = startClock();
    const { lifecycle } = startEngine({ now, progressIntervalMs: 0 });
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    const feed = await follow(lifecycle, [taskId]);
    await takeAll(feed);
    for (let step = 0; step < 50; step += 1) await task.progress(`step ${step}`);
    expect(await takeAll(feed)).toMatchObject([{ statusMessage: "step 49" }]);
    void task.requestInput({ a: question("first") }).catch(() => undefined);
    await expect.poll(() => feed.hasChanges).toBe(true);
    const [one] = await takeAll(feed);
    void task.requestInput({ b: question("second") }).catch(() => undefined);
    await expect.poll(() => feed.hasChanges).toBe(true);
    const [two] = await takeAll(feed);
    expect(two?.lastUpdatedAt).toBe(one?.lastUpdatedAt);
    expect(Object.keys((two as { inputRequests: object }).inputRequests)).toEqual(["a", "b"]);
    feed.close();
  });

  test("leaves out unknown, foreign and hostile ids alike, and names each of the others once", async () => {
    const spied = spiedStore(new MemoryTaskStore());
    const { lifecycle } = startEngine({ store: spied.store });
    const { taskId: mine } = await lifecycle.createTask({ scope: "ann" });
    const { taskId: other } = await lifecycle.createTask({ scope: "ann" });
    const { taskId: foreign } = await lifecycle.createTask({ scope: "eve" });
    spied.take();
    const ids = [other, "../x", foreign, mine, "nobody", "~secret", mine];
    const feed = await follow(lifecycle, ids, "ann");
    expect(feed.taskIds).toEqual([other, mine]);
    const read = spied.take().flatMap(({ method, taskId }) => (method === "get" ? [taskId] : []));
    expect(read, "a hostile id is not looked for").toEqual([other, foreign, mine, "nobody"]);
    expect((await takeAll(feed)).map(({ taskId }) => taskId)).toEqual([other, mine]);
    feed.close();
    expect((await follow(lifecycle, [mine])).taskIds, "no scope is not every scope").toEqual([]);
  });

  test.for([
    ["tells of its changes", (store: MemoryTaskStore) => store, 0],
    ["loses its hints", withLostHints, 700],
    ["gives no hints", fiveMethods, 700],
  ] as const)("a change by another engine is heard on a store that %s", async ([, wrap, afterMs]) => {
    vi.useFakeTimers();
    const store = wrap(new MemoryTaskStore());
    const owner = startEngine({ store });
    const other = startEngine({ store, waitPollMs: 700 });
    const { taskId } = await owner.lifecycle.createTask();
    let signs = 0;
    const feed = await other.lifecycle.followTasks([taskId], { onChange: () => (signs += 1) });
    await takeAll(feed);
    await owner.lifecycle.handle(taskId).progress("half");
    await vi.advanceTimersByTimeAsync(Math.max(0, afterMs - 1));
    if (afterMs > 0) expect(signs).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(signs).toBe(1);
    expect(await takeAll(feed)).toMatchObject([{ statusMessage: "half" }]);
    feed.close();
  });

  test("looking again at a task that has not changed gives nothing", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine({ waitPollMs: 100 });
    const { taskId } = await lifecycle.createTask();
    const feed = await follow(lifecycle, [taskId]);
    expect(await takeAll(feed)).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(500);
    expect(feed.hasChanges).toBe(true);
    expect(await takeAll(feed)).toEqual([]);
    feed.close();
  });

  test("what is written and not shown, such as signs of life on a store that cannot renew, gives nothing", async () => {
    vi.useFakeTimers();
    const store = fiveMethods(new MemoryTaskStore());
    const owner = startEngine({ store, leaseMs: 3_000 });
    const { taskId } = await owner.lifecycle.createTask();
    const { lifecycle } = startEngine({ store });
    const feed = await follow(lifecycle, [taskId]);
    expect(await takeAll(feed)).toHaveLength(1);
    const before = await store.get(taskId);
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await store.get(taskId))?.version).toBeGreaterThan(before?.version ?? Infinity);
    expect(await takeAll(feed)).toEqual([]);
    feed.close();
  });

  test.for([
    ["tells of its changes", (store: MemoryTaskStore) => store, 7],
    ["gives no hints", fiveMethods, 100],
  ] as const)("a store that %s is looked at as often as that takes", async ([, wrap, times]) => {
    vi.useFakeTimers();
    const store = wrap(new MemoryTaskStore());
    const { taskId } = await startEngine({ store }).lifecycle.createTask();
    const { lifecycle } = startEngine({ store, leaseMs: 30_000 });
    let signs = 0;
    const feed = await lifecycle.followTasks([taskId], { onChange: () => (signs += 1) });
    await vi.advanceTimersByTimeAsync(100_000);
    expect(signs).toBe(times);
    feed.close();
  });

  test("takes over a task that was left behind on a store that cannot claim, as polling would", async () => {
    vi.useFakeTimers();
    const store = fiveMethods(new MemoryTaskStore());
    const { taskId } = await startEngine({ store }).lifecycle.createTask({ work: { tool: "t" } });
    const record = await store.get(taskId);
    await store.update(taskId, { cancelRequestedAt: new Date().toISOString() }, record?.version ?? 0);
    const gone = await store.get(taskId);
    await store.update(
      taskId,
      { lease: { owner: "gone", token: "gone", durationMs: 50 } },
      gone?.version ?? 0,
    );
    const { lifecycle } = startEngine({ store, waitPollMs: 700 });
    const feed = await follow(lifecycle, [taskId]);
    for (let looks = 0; looks < 3; looks += 1) {
      await takeAll(feed);
      await vi.advanceTimersByTimeAsync(700);
    }
    expect((await store.get(taskId))?.status).toBe("cancelled");
    feed.close();
  });

  test("a store that is away is reported once, and asked again: no state is lost", async () => {
    vi.useFakeTimers();
    const spied = spiedStore(new MemoryTaskStore());
    const engine = startEngine({ store: spied.store, waitPollMs: 100 });
    const { taskId } = await engine.lifecycle.createTask();
    const feed = await follow(engine.lifecycle, [taskId]);
    spied.disturb(({ method }) => {
      if (method === "get") throw new LongJobsError("store_unavailable", "The store is away.");
    });
    for (let looks = 0; looks < 3; looks += 1) {
      expect(await takeAll(feed)).toEqual([]);
      await vi.advanceTimersByTimeAsync(500);
    }
    expect(takeErrors(engine)).toMatchObject([{ code: "store_unavailable" }]);
    expect(await codeOf(follow(engine.lifecycle, [taskId]))).toBe("store_unavailable");
    spied.disturb(undefined);
    expect(await takeAll(feed)).toMatchObject([{ taskId, status: "working" }]);
    feed.close();
  });

  test("a task that is gone has nothing more to say", async () => {
    vi.useFakeTimers();
    const { lifecycle, store } = startEngine({ retentionMs: 1_000 });
    const { taskId } = await lifecycle.createTask({ ttlMs: 1 });
    const feed = await follow(lifecycle, [taskId]);
    await lifecycle.handle(taskId).complete({});
    await vi.advanceTimersByTimeAsync(20 * 60_000);
    expect(await store.get(taskId)).toBeUndefined();
    expect(await takeAll(feed)).toEqual([]);
    expect(feed.isOver).toBe(true);
    expect(lifecycle.stats.watchedTasks).toBe(0);
  });

  test("a feed that is closed, in the middle of a look too, leaves no listener, watch or timer", async () => {
    vi.useFakeTimers();
    const inner = new MemoryTaskStore();
    const spied = spiedStore(inner);
    const owner = startEngine({ store: inner });
    const { lifecycle } = startEngine({ store: spied.store });
    const ids: string[] = [];
    for (let made = 0; made < 20; made += 1) ids.push((await owner.lifecycle.createTask()).taskId);
    await lifecycle.recover();
    const timers = vi.getTimerCount();
    const feed = await follow(lifecycle, ids);
    expect(lifecycle.stats.watchedTasks).toBe(20);
    expect(vi.getTimerCount(), "one timer for all").toBe(timers + 1);
    const looking = feed.take();
    feed.close();
    feed.close();
    expect(await looking).toBeUndefined();
    expect(feed.hasChanges).toBe(false);
    expect(await feed.take()).toBeUndefined();
    expect(lifecycle.stats.watchedTasks).toBe(0);
    expect(vi.getTimerCount()).toBe(timers);
    spied.take();
    for (const taskId of ids) await owner.lifecycle.handle(taskId).complete({});
    await vi.advanceTimersByTimeAsync(60_000);
    expect(countCalls(spied.take())["get"] ?? 0).toBe(0);
  });

  test("the timer ends with the last of its tasks", async () => {
    vi.useFakeTimers();
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const timers = vi.getTimerCount();
    const feed = await follow(lifecycle, [taskId]);
    await lifecycle.handle(taskId).complete({});
    await takeAll(feed);
    expect(vi.getTimerCount()).toBeLessThanOrEqual(timers);
    const none = await follow(lifecycle, ["nobody"]);
    expect([none.taskIds, none.isOver]).toEqual([[], true]);
    expect(vi.getTimerCount()).toBeLessThanOrEqual(timers);
  });

  test("an engine that closes takes no new followers, and lets those it has take the last states", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const feed = await follow(lifecycle, [taskId]);
    await takeAll(feed);
    await lifecycle.handle(taskId).complete({});
    await lifecycle.close();
    expect(await codeOf(follow(lifecycle, [taskId]))).toBe("store_closed");
    expect(await takeAll(feed)).toMatchObject([{ status: "completed" }]);
  });
});
