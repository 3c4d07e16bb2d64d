/* How a subscription lives and ends over HTTP: slow readers, readers that go, servers that close, other instances. */
import { MemoryTaskStore } from "@longjobs/core";
import { afterEach, describe, expect, test, vi } from "vitest";

import { HttpDoor } from "../support/http-door.ts";
import { NodeHttp } from "../support/node-http.ts";
import { SpyStore, WatchableSpyStore } from "../support/spy-store.ts";
import { startTasks } from "../support/started-tasks.ts";
import { gatedTool } from "../support/tools.ts";
import { nextTurn } from "../support/turns.ts";
import type { WireResult } from "../support/wire.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

function open(options: Parameters<typeof startTasks>[0] = {}) {
  const started = startTasks({ progressIntervalMs: 0, ...options });
  return {
    ...started,
    tool: gatedTool(started.tasks, "work"),
    http: new HttpDoor(started.tasks, { push: true }),
  };
}

/** A worker, and an instance that only tells: what it reads, it reads for subscribers. */
function openTwo() {
  const store = new MemoryTaskStore();
  const watchable = new WatchableSpyStore(store);
  return { there: open({ store }), here: { ...open({ store: watchable, waitPollMs: 600_000 }), watchable } };
}

describe("a slow reader", () => {
  test("gets the latest state and no backlog, and nothing is read that it does not take", async () => {
    const { there, here } = openTwo();
    const taskId = await there.http.startTask("work");
    const stream = await here.http.listen({ taskIds: [taskId] });
    here.store.calls.length = 0;
    for (let step = 1; step <= 500; step += 1) await there.tool.runs[0]?.progress(`step ${step}`);
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect(here.store.calls, "nobody takes, so nobody looks").toEqual([]);
    expect(await stream.acknowledged()).toEqual([taskId]);
    const told = [await stream.task()];
    while (told.at(-1)?.["statusMessage"] !== "step 500") told.push(await stream.task());
    expect(told.length).toBeLessThanOrEqual(2);
    there.tool.gate.open();
    await stream.until("completed");
    await stream.ended();
    expect(here.tasks.stats().watchedTasks).toBe(0);
  });

  test("over a socket that is full: what is held stays small, whatever changes", async () => {
    const { there, here } = openTwo();
    const taskId = await there.http.startTask("work");
    const server = await NodeHttp.listen(here.http);
    const stream = await server.listen({ taskIds: [taskId] });
    expect(await stream.acknowledged()).toEqual([taskId]);
    // 60 MB would pass; the buffers of sockets take a few.
    const words = "x".repeat(30_000);
    for (let step = 1; step <= 2_000; step += 1) {
      await there.tool.runs[0]?.progress(`${step} ${words}`);
      await nextTurn();
    }
    const looks = here.store.calls.filter(({ method }) => method === "get").length;
    expect(looks, "states that were read for it").toBeLessThan(500);
    there.tool.gate.open();
    await stream.until("completed");
    await stream.ended();
  });
});

describe("another instance", () => {
  test.for([
    ["tells of changes", (store: MemoryTaskStore) => new WatchableSpyStore(store), 600_000],
    ["gives no hints", (store: MemoryTaskStore) => new SpyStore(store), 50],
  ] as const)(
    "changes a task, and the subscriber hears of it, on a store that %s",
    async ([, wrap, waitPollMs]) => {
      const store = new MemoryTaskStore();
      const there = open({ store });
      const here = open({ store: wrap(store), waitPollMs });
      const taskId = await there.http.startTask("work");
      const stream = await here.http.listen({ taskIds: [taskId] });
      expect(await stream.acknowledged()).toEqual([taskId]);
      await stream.task();
      await there.tool.runs[0]?.progress("half");
      expect(await stream.task()).toMatchObject({ statusMessage: "half" });
      there.tool.gate.open();
      const done = await stream.until("completed");
      const result: WireResult & { readonly _meta?: unknown } = await here.http.get(taskId);
      const { resultType: _type, _meta, ...asked } = result;
      expect(done).toEqual(asked);
      await stream.ended();
    },
  );
});

describe("a reader that goes", () => {
  test("frees everything, by closing the stream, by its signal, and before it has read", async () => {
    const { there, here } = openTwo();
    const { http, store, tasks } = here;
    const taskId = await there.http.startTask("work");
    const gone = new AbortController();
    const filters = [{ taskIds: [taskId] }, { toolsListChanged: true, taskIds: [taskId] }];
    const streams = [];
    for (const filter of filters) {
      const one = await http.listen(filter);
      await one.acknowledged();
      streams.push(one, await http.listen(filter), await http.listen(filter, { signal: gone.signal }));
    }
    gone.abort();
    for (const stream of streams) await stream.close();
    const late = await http
      .listen({ taskIds: [taskId] }, { signal: AbortSignal.abort() })
      .catch(() => undefined);
    await late?.close();
    expect(tasks.stats().watchedTasks).toBe(0);
    await expect.poll(() => here.watchable.watched.size).toBe(0);
    store.calls.length = 0;
    await there.tool.runs[0]?.progress("nobody listens");
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect(store.calls).toEqual([]);
    there.tool.gate.open();
    await there.http.until(taskId, "completed");
  });

  test("a hundred subscriptions that come and go leave no timer, listener, watch or count", async () => {
    const inner = new MemoryTaskStore();
    const store = new WatchableSpyStore(inner);
    const owner = open({ store: inner });
    const taskId = await owner.http.startTask("work");
    const timers = new Set<unknown>();
    const { tasks } = startTasks({
      store,
      push: { maxSubscriptions: 2, keepAliveMs: 1_000 },
      schedule: (run, delayMs) => {
        expect(delayMs, "longer, and a timer is over at once").toBeLessThan(2 ** 31);
        const timer = setTimeout(() => {
          timers.delete(timer);
          run();
        }, delayMs);
        timers.add(timer);
        return () => {
          timers.delete(timer);
          clearTimeout(timer);
        };
      },
    });
    await tasks.recover();
    const http = new HttpDoor(tasks, { push: true });
    const idle = timers.size;
    const auth = { clientId: "host", expiresAt: Date.now() / 1_000 + 30 * 24 * 3_600 };
    for (let round = 0; round < 100; round += 1) {
      const gone = new AbortController();
      const stream = await http.listen({ taskIds: [taskId] }, { signal: gone.signal, auth });
      expect(await stream.acknowledged()).toEqual([taskId]);
      if (round % 3 === 0) gone.abort();
      await stream.close();
      if (round === 0) expect(timers.size).toBe(idle);
    }
    expect(timers.size).toBe(idle);
    expect(tasks.stats().watchedTasks).toBe(0);
    await expect.poll(() => store.watched.size).toBe(0);
    owner.tool.gate.open();
    await owner.http.until(taskId, "completed");
  });

  test("by breaking the connection frees everything too", async () => {
    const { there, here } = openTwo();
    const taskId = await there.http.startTask("work");
    const server = await NodeHttp.listen(here.http);
    const stream = await server.listen({ taskIds: [taskId] });
    expect(await stream.acknowledged()).toEqual([taskId]);
    await stream.task();
    expect(here.tasks.stats().watchedTasks).toBe(1);
    server.closeConnections();
    await expect.poll(() => here.tasks.stats().watchedTasks).toBe(0);
    there.tool.gate.open();
    await there.http.until(taskId, "completed");
  });
});

describe("a token that expires", () => {
  test("breaks the stream off at that moment, also in a month, and leaves nothing", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const { there, here } = openTwo();
    const taskId = await there.http.startTask("work");
    const as = (afterSeconds: number) => ({
      auth: { clientId: "host", expiresAt: Math.floor(Date.now() / 1_000) + afterSeconds },
    });
    const month = 30 * 24 * 3_600;
    const streams = [
      await here.http.listen({ taskIds: [taskId] }, as(60)),
      await here.http.listen({ toolsListChanged: true, taskIds: [taskId] }, as(60)),
      await here.http.listen({ taskIds: [taskId] }, as(month)),
      await here.http.listen({ taskIds: [taskId] }, as(-60)),
    ] as const;
    const [soon, beside, late, judged] = streams;
    for (const stream of streams) {
      expect(await stream.acknowledged()).toEqual([taskId]);
      await stream.task();
    }
    await vi.advanceTimersByTimeAsync(61_000);
    expect([await soon.next(), await beside.next()]).toEqual([undefined, undefined]);
    await there.tool.runs[0]?.progress("half");
    for (const stream of [late, judged]) expect(await stream.task()).toMatchObject({ statusMessage: "half" });
    await late.close();
    await judged.close();
    expect(here.tasks.stats().watchedTasks).toBe(0);
    there.tool.gate.open();
    await vi.advanceTimersByTimeAsync(1_000);
    await there.http.until(taskId, "completed");
  });
});

describe("a server that closes", () => {
  test("tells what ended while it drained, then ends every stream cleanly", async () => {
    const { http, tasks, tool } = open();
    const [first, second] = [await http.startTask("work"), await http.startTask("work")];
    const alone = await http.listen({ taskIds: [first, second] });
    const beside = await http.listen({ toolsListChanged: true, taskIds: [first] });
    const silent = await http.listen({ toolsListChanged: true });
    expect([await alone.acknowledged(), await beside.acknowledged()]).toEqual([[first, second], [first]]);
    await silent.next();
    const closing = tasks.close({ drainMs: 5_000, shutdownGraceMs: 0 });
    tool.gate.open();
    const told = [await alone.until("completed"), await alone.until("completed")].map(({ taskId }) => taskId);
    expect(new Set(told)).toEqual(new Set([first, second]));
    await alone.ended();
    await beside.until("completed");
    await beside.ended();
    await closing;
    http.handler.notify.toolsChanged();
    expect(await silent.next(), "the SDK's own goes on").toMatchObject({
      method: "notifications/tools/list_changed",
    });
    await silent.close();
  });

  test("ends a stream whose task goes on elsewhere, and refuses new ones", async () => {
    const { there, here } = openTwo();
    const taskId = await there.http.startTask("work");
    const stream = await here.http.listen({ taskIds: [taskId] });
    expect(await stream.acknowledged()).toEqual([taskId]);
    await stream.task();
    await here.tasks.close();
    await here.tasks.close();
    await stream.ended();
    const refused = await here.http.listen({ taskIds: [taskId] });
    expect((await refused.next())?.error).toMatchObject({ code: -32_603, data: { code: "store_closed" } });
    expect(here.errors.splice(0)).toMatchObject([{ code: "store_closed" }]);
    const again = await there.http.listen({ taskIds: [taskId] });
    expect(await again.acknowledged()).toEqual([taskId]);
    there.tool.gate.open();
    await again.until("completed");
    await again.ended();
  });

  test("does not wait long for a reader that takes nothing", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { there, here } = openTwo();
    const taskId = await there.http.startTask("work");
    const stream = await here.http.listen({ taskIds: [taskId] });
    await nextTurn();
    let closed = false;
    const closing = here.tasks.close().then(() => {
      closed = true;
    });
    await vi.advanceTimersByTimeAsync(900);
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(closed).toBe(false);
    await vi.advanceTimersByTimeAsync(2_000);
    await closing;
    expect(here.tasks.stats().watchedTasks).toBe(0);
    vi.useRealTimers();
    expect(await stream.acknowledged()).toEqual([taskId]);
    await stream.ended();
    there.tool.gate.open();
    await there.http.until(taskId, "completed");
  });

  test("a handler that closes ends the streams that came over it, and no others", async () => {
    const { http, tasks, tool } = open();
    const other = new HttpDoor(tasks, { push: true });
    const taskId = await http.startTask("work");
    const [alone, beside, elsewhere] = [
      await http.listen({ taskIds: [taskId] }),
      await http.listen({ toolsListChanged: true, taskIds: [taskId] }),
      await other.listen({ taskIds: [taskId] }),
    ];
    for (const stream of [alone, beside, elsewhere]) {
      expect(await stream.acknowledged()).toEqual([taskId]);
      await stream.task();
    }
    await http.handler.close();
    await alone.ended();
    await beside.ended();
    tool.gate.open();
    await elsewhere.until("completed");
    await elsewhere.ended();
  });
});
