import { isLongJobsError } from "@longjobs/core";
import { afterAll, expect, it } from "vitest";
import type { RedisTaskStore } from "../src/index.ts";
import { strangeIds } from "./support/exercise.ts";
import { findRedis, withOwnServers, withRedis } from "./support/find-redis.ts";
import { bigResult, record } from "./support/records.ts";
import { keysUnder, testClient, testServer, testStore } from "./support/store-fixture.ts";
import { waitUntil } from "./support/wait-until.ts";

const found = await findRedis();
afterAll(() => found?.stop());

/** What may live for ever: the number of the format, and per shard what says which tasks there are. */
const lasting = /:(?:format|\{\d+\}:(?:exp|indexes|cancelled|due:.*))$/s;

withRedis("the keys of a store", found, (url) => {
  it("P45: every key but the indexes and the format has an expiry, and it is the task's", async () => {
    const { store, keyPrefix, client } = testStore(url);
    for (const [index, taskId] of strangeIds.entries()) {
      await store.create(record(taskId, { ttlMs: 60_000, work: { tool: `tool ${index % 3}` } }));
      await store.update(taskId, { ttlMs: 100_000 + index, result: bigResult(5_000) }, 1);
      for (let poll = 0; poll < 3; poll += 1) await store.get(taskId);
    }
    const tasks = (await keysUnder(client, keyPrefix)).filter((key) => !lasting.test(key));
    expect(tasks).toHaveLength(strangeIds.length);
    for (const key of tasks) expect(await client.pttl(key)).toBeGreaterThan(100_000 - 10_000);
  });

  it("P23: after expiry and a sweep no key is left but the number of the format", async () => {
    const { store, keyPrefix, client } = testStore(url);
    for (const taskId of strangeIds) {
      const lease = { owner: "owner", token: "token", durationMs: 60_000 };
      await store.create(
        record(taskId, { ttlMs: 60_000, work: { tool: taskId }, lease, data: "x".repeat(2_000) }),
      );
    }
    await store.update("plain", { cancelRequestedAt: "2026-01-01T00:00:00.000Z" }, 1);
    await store.update("*", { work: undefined }, 1);
    await store.claim("claimer", 60_000, { limit: 5 });
    await store.renew([{ taskId: "{7}", token: "token" }], 60_000);
    for (const taskId of strangeIds) {
      const { version = 0 } = (await store.get(taskId)) ?? {};
      await store.update(taskId, { ttlMs: 1 }, version);
    }
    await waitUntil(async () => (await store.get("plain")) === undefined, "the tasks expire");
    expect(await store.sweep()).toBe(strangeIds.length);
    expect(await keysUnder(client, keyPrefix)).toEqual([`${keyPrefix}:format`]);
  });

  it("P23: an entry that an earlier task of the same id left in the index of another tool goes with the next claim", async () => {
    const { store, keyPrefix, client } = testStore(url);
    await store.create(record("reborn", { ttlMs: 1, work: { tool: "old" } }));
    await waitUntil(async () => (await store.get("reborn")) === undefined, "the first task expires");
    await store.create(record("reborn", { ttlMs: 60_000, work: { tool: "new" } }));
    expect(await store.claim("claimer", 1_000, { limit: 1, tools: ["old"] })).toEqual([]);
    expect((await keysUnder(client, keyPrefix)).filter((key) => key.endsWith(":due:old"))).toEqual([]);
    expect(await store.claim("claimer", 1_000, { limit: 1, tools: ["new"] })).toHaveLength(1);
  });

  it("P23: a task without an end leaves no entry of an end that an earlier task of its id had", async () => {
    const { store, keyPrefix, client } = testStore(url);
    await store.create(record("reborn", { ttlMs: 1 }));
    await waitUntil(async () => (await store.get("reborn")) === undefined, "the first task expires");
    await store.create(record("reborn", { ttlMs: null }));
    expect((await keysUnder(client, keyPrefix)).filter((key) => key.endsWith(":exp"))).toEqual([]);
    await store.update("reborn", { ttlMs: 60_000 }, 1);
    await store.update("reborn", { ttlMs: null }, 2);
    expect((await keysUnder(client, keyPrefix)).filter((key) => key.endsWith(":exp"))).toEqual([]);
    expect(await store.sweep()).toBe(0);
    expect(await store.get("reborn")).toMatchObject({ version: 3 });
  });

  it("a sweep of 1,000 expired tasks takes them all, and their entries in every index", async () => {
    const { store, keyPrefix, client } = testStore(url);
    const ids = Array.from({ length: 1_000 }, (_, index) => `task-${index}`);
    await Promise.all(
      ids.map((taskId, index) => store.create(record(taskId, { ttlMs: 1, work: { tool: `${index % 5}` } }))),
    );
    await waitUntil(async () => (await store.get("task-999")) === undefined, "the last task expires");
    expect(await store.sweep()).toBe(1_000);
    expect(await keysUnder(client, keyPrefix)).toEqual([`${keyPrefix}:format`]);
  });

  it("another store's keys are not touched, whatever the prefixes have in common", async () => {
    const { store, keyPrefix, client } = testStore(url);
    const { store: other } = testStore(url, { keyPrefix: `${keyPrefix}:x` });
    await store.create(record("mine", { work: { tool: "t" } }));
    expect(await other.get("mine")).toBeUndefined();
    expect(await other.claim("claimer", 1_000, { limit: 9 })).toEqual([]);
    await other.create(record("mine", { work: { tool: "t" } }));
    expect(await store.claim("claimer", 1_000, { limit: 9 })).toHaveLength(1);
    expect((await keysUnder(client, keyPrefix)).filter((key) => key.endsWith(":t:mine"))).toHaveLength(2);
  });
});

withOwnServers("the keys of a store whose connections break", () => {
  it("P45: after random connection kills no task is without an expiry, and expiry with a sweep leaves nothing", async () => {
    const { url } = await testServer();
    const killer = testClient(url);
    const client = testClient(url, { retryStrategy: () => 5, maxRetriesPerRequest: 0 });
    const { store, keyPrefix } = testStore(url, { client, onError: () => undefined });
    const outcomes = { done: 0, refused: 0 };
    const state = { loading: true };
    const killing = (async () => {
      while (state.loading) {
        await killer.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
        await waitUntil(() => client.status === "ready", "the client connects again");
      }
    })();
    const loads = Array.from({ length: 8 }, (_, load) => runLoad(store, load, outcomes));
    await Promise.all(loads);
    state.loading = false;
    await killing;
    expect(outcomes.done).toBeGreaterThan(0);
    expect(outcomes.refused, "no kill hit a call").toBeGreaterThan(0);
    const tasks = (await keysUnder(killer, keyPrefix)).filter((key) => !lasting.test(key));
    for (const key of tasks) expect(await killer.pttl(key), key).not.toBe(-1);
    await waitUntil(
      async () => (await keysUnder(killer, keyPrefix)).every((key) => lasting.test(key)),
      "every task expires",
    );
    await store.sweep();
    expect(await keysUnder(killer, keyPrefix)).toEqual([`${keyPrefix}:format`]);
  });
});

/** Lives of tasks that never last longer than a second and a half, whatever becomes of each call. */
async function runLoad(
  store: RedisTaskStore,
  load: number,
  outcomes: { done: number; refused: number },
): Promise<void> {
  const attempt = async (call: Promise<unknown>): Promise<void> => {
    await call.then(
      () => (outcomes.done += 1),
      (error: unknown) => {
        if (!isLongJobsError(error)) throw error;
        outcomes.refused += 1;
      },
    );
  };
  for (let round = 0; round < 60; round += 1) {
    const taskId = `task-${load}-${round}`;
    const lease = { owner: "owner", token: "token", durationMs: 1 + (round % 3) };
    await attempt(store.create(record(taskId, { ttlMs: 1_000, work: { tool: `tool ${round % 3}` }, lease })));
    await attempt(store.update(taskId, { ttlMs: 1_500, progress: { done: round } }, 1));
    await attempt(store.renew([{ taskId, token: "token" }], 1));
    await attempt(store.claim("claimer", 1, { limit: 2, tools: [`tool ${round % 3}`] }));
    await attempt(store.update(taskId, { cancelRequestedAt: "2026-01-01T00:00:00.000Z" }, 2));
    if (round % 2 === 0) await attempt(store.update(taskId, { status: "cancelled", lease: undefined }, 3));
  }
}
