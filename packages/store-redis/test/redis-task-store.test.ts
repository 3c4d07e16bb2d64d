import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { TaskRecord } from "@longjobs/core";
import { Redis, type RedisOptions } from "ioredis";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { RedisTaskStore, type RedisTaskStoreOptions } from "../src/index.ts";
import { findRedis, withRedis } from "./support/find-redis.ts";
import { recordingClient } from "./support/recording-client.ts";
import { bigResult, record } from "./support/records.ts";
import { freshPrefix, keysUnder, testClient, testStore } from "./support/store-fixture.ts";
import { startTcpProxy } from "./support/tcp-proxy.ts";
import { waitUntil } from "./support/wait-until.ts";

const found = await findRedis();
afterAll(() => found?.stop());

describe("options", () => {
  const client = { evalsha: () => undefined };

  it.each([
    ["client", undefined],
    ["client", {}],
    ["keyPrefix", ""],
    ["keyPrefix", "a{b"],
    ["keyPrefix", "a}b"],
    ["keyPrefix", 5],
    ["commandTimeoutMs", 0],
    ["commandTimeoutMs", 1.5],
    ["commandTimeoutMs", Number.NaN],
    ["commandTimeoutMs", 2 ** 31],
    ["maxRecordBytes", 0],
    ["maxRecordBytes", 2 ** 28 + 1],
    ["onError", "log"],
  ])("%s: %s is refused when the store is made", (name, value) => {
    const options = { client, [name]: value } as unknown as RedisTaskStoreOptions;
    expect(() => new RedisTaskStore(options)).toThrow(name);
  });
});

withRedis("RedisTaskStore", found, (url) => {
  it("a store that is made opens nothing and sends nothing", () => {
    const client = testClient(url, { lazyConnect: true });
    const { calls, client: recording } = recordingClient(client);
    expect(new RedisTaskStore({ client: recording })).toBeInstanceOf(RedisTaskStore);
    expect(client.status).toBe("wait");
    expect(calls).toEqual([]);
  });

  it("the client stays open after close(), and serves another store", async () => {
    const { store, client, keyPrefix } = testStore(url);
    await store.create(record("task"));
    await store.close();
    await store.close();
    expect(client.status).toBe("ready");
    expect(await testStore(url, { client, keyPrefix }).store.get("task")).toEqual(record("task"));
  });

  it("`await using` closes the store", async () => {
    const client = testClient(url);
    const keyPrefix = freshPrefix(url);
    let used: RedisTaskStore;
    {
      await using store = new RedisTaskStore({ client, keyPrefix });
      await store.create(record("task"));
      used = store;
    }
    await expect(used.get("task")).rejects.toMatchObject({ code: "store_closed" });
  });

  it("a patch writes the fields that it names, and no other", async () => {
    const { calls, client } = recordingClient(testClient(url));
    const { store } = testStore(url, { client });
    await store.create(record("task", { result: bigResult(100_000), statusMessage: "before" }));
    await store.update("task", { progress: { done: 1 }, statusMessage: undefined }, 1);
    const { values = [] } = calls.at(-1) ?? {};
    expect(values.slice(4)).toEqual(["1", "progress", '{"done":1}', "statusMessage"]);
    expect(values.join("").length).toBeLessThan(100);
  });

  it("a field is JSON text in a hash, and small fields lie beside large ones", async () => {
    const { store, client, keyPrefix } = testStore(url);
    await store.create(record("task", { result: bigResult(3), progress: { done: 0.1 }, data: [] }));
    const [key = ""] = await client.keys(`${keyPrefix}:*:t:task`);
    expect(await client.hgetall(key)).toMatchObject({
      version: "1",
      status: '"working"',
      progress: '{"done":0.1}',
      data: "[]",
      ttlMs: "null",
    });
  });

  it("text that no script may read comes back to the letter: digits, empty lists, __proto__, names like our own", async () => {
    const { store } = testStore(url);
    const data = JSON.parse(
      '{"__proto__":{"a":[]},"n":[1e21,5e-324,123456789012345680000,0.30000000000000004],"\\ud800":"\\udfff","":null}',
    ) as TaskRecord["data"];
    const fields = {
      "@born": "ours",
      "@index": [1],
      '"quoted"': { a: 1 },
      "": 0,
      "\udfff": "lone",
      constructor: 1,
    };
    const strange = { ...record("task", { data: data ?? null }), ...fields };
    await store.create(strange);
    expect(await store.get("task")).toEqual(strange);
    await store.update("task", { ["@born" as "scope"]: "patched" }, 1);
    expect(await store.get("task")).toEqual({ ...strange, "@born": "patched", version: 2 });
    expect(await store.claim("owner", 1_000, { limit: 1 })).toHaveLength(1);
  });

  it("an own field named __proto__ comes back as one", async () => {
    const { store } = testStore(url);
    const strange = JSON.parse(
      `{"__proto__":{"polluted":1},${JSON.stringify(record("task")).slice(1)}`,
    ) as TaskRecord;
    await store.create(strange);
    const kept = (await store.get("task")) ?? strange;
    expect(Object.hasOwn(kept, "__proto__")).toBe(true);
    expect(kept).toEqual(strange);
  });

  it("the limit of a record counts every byte of it as it is now, however it came there", async () => {
    const maxRecordBytes = 2_000;
    const { store } = testStore(url, { maxRecordBytes });
    const base = record("task", { data: "", version: 100 });
    // The fields, their names in quotes, colons, commas and braces, without the id, which is in the key.
    const { taskId: _, ...kept } = base;
    const room = maxRecordBytes - JSON.stringify(kept).length;
    await expect(store.create({ ...base, data: "x".repeat(room + 1) })).rejects.toMatchObject({
      code: "record_too_large",
      partial: { bytes: maxRecordBytes + 1, maxBytes: maxRecordBytes },
    });
    await store.create({ ...base, data: "x".repeat(room) });
    await expect(store.update("task", { statusMessage: "" }, 100)).rejects.toMatchObject({
      code: "record_too_large",
    });
    // Written over and over, a field counts once.
    for (let version = 100; version < 130; version += 1) {
      await store.update(
        "task",
        { data: (version % 2 ? "y" : "é".repeat(room / 2)).slice(0, room) },
        version,
      );
    }
    await expect(store.update("task", { data: "é".repeat(room / 2 + 1) }, 130)).rejects.toMatchObject({
      code: "record_too_large",
    });
    expect(await store.get("task")).toMatchObject({ version: 130 });
    // What a patch deletes makes room for what it sets.
    const result = { text: "x".repeat(room - '"result":{"text":"'.length) };
    expect(await store.update("task", { data: undefined, result }, 130)).toBe(131);
  });

  it.each<[string, RedisOptions]>([
    ["RESP2", { protocol: 2 }],
    ["RESP3 with its own shapes", { protocol: 3, replyMapping: "resp3" }],
    ["numbers as texts", { stringNumbers: true }],
    ["pipelines of its own", { enableAutoPipelining: true }],
    ["a prefix of its own", { keyPrefix: `${randomUUID()}:` }],
  ])("a client with %s serves as well", async (_name, options) => {
    const client = new Redis(url, options as object);
    const admin = testClient(url);
    const keyPrefix = freshPrefix(url);
    const store = new RedisTaskStore({ client, keyPrefix });
    const created = record("task", {
      data: { list: [], deep: [1.5, null] },
      work: { tool: "t" },
      ttlMs: 60_000,
    });
    let hints = 0;
    await store.watch("task", () => {
      hints += 1;
    });
    await store.create(created);
    expect(await store.get("task")).toEqual(created);
    await expect(store.create(created)).rejects.toMatchObject({ code: "task_exists" });
    await expect(store.update("task", {}, 7)).rejects.toMatchObject({
      code: "version_conflict",
      partial: { expectedVersion: 7, actualVersion: 1 },
    });
    expect(await store.update("task", { ttlMs: 1, lease: undefined }, 1)).toBe(2);
    await waitUntil(async () => (await store.get("task")) === undefined, "the task expires");
    expect(await store.sweep()).toBe(1);
    await store.create(created);
    const [claimed] = await store.claim("owner", 60_000, { limit: 1, tools: ["t"] });
    expect(await store.renew([{ taskId: "task", token: claimed?.lease?.token ?? "" }], 60_000)).toEqual([]);
    expect(await store.renew([{ taskId: "task", token: "another" }], 60_000)).toEqual(["task"]);
    await waitUntil(() => hints > 0, "the watch hears");
    await store.close();
    client.disconnect();
    for (const key of await keysUnder(admin, options.keyPrefix ?? keyPrefix)) await admin.del(key);
  });

  it("close() waits for the reply of a call that is under way", async () => {
    const proxy = await startTcpProxy(Number(new URL(url).port || 6379), 100);
    onTestFinished(() => proxy.close());
    const { store } = testStore(url, { client: testClient(`redis://127.0.0.1:${proxy.port}`) });
    await store.get("task");
    const outcome = { settled: false };
    const creating = store.create(record("task")).finally(() => (outcome.settled = true));
    await store.close();
    await nextTurn();
    expect(outcome.settled).toBe(true);
    await creating;
  });

  it("every call is one round trip, and a claim two", async () => {
    const proxy = await startTcpProxy(Number(new URL(url).port || 6379), 50);
    onTestFinished(() => proxy.close());
    const { store } = testStore(url, { client: testClient(`redis://127.0.0.1:${proxy.port}`) });
    const tools = ["a", "b", "c"];
    const trips = async (call: () => Promise<unknown>): Promise<number> => {
      const before = proxy.turns;
      await call();
      return proxy.turns - before;
    };
    for (let warm = 0; warm < 2; warm += 1) {
      const ids = tools.map((tool) => `${tool}-${warm}`);
      const lease = { owner: "owner", token: "token", durationMs: 1 };
      const measured = [
        await trips(() =>
          Promise.all(
            ids.map((id, index) =>
              store.create(record(id, { ttlMs: 60_000, lease, work: { tool: tools[index] ?? "" } })),
            ),
          ),
        ),
        await trips(() => store.get(`a-${warm}`)),
        await trips(() => store.update(`a-${warm}`, { progress: { done: 1 } }, 1)),
        await trips(() =>
          store.update(`b-${warm}`, { status: "completed", lease: undefined, ttlMs: 90_000 }, 1),
        ),
        await trips(() =>
          store.renew(
            ids.map((taskId) => ({ taskId, token: "token" })),
            1,
          ),
        ),
        await trips(() => store.sweep()),
        await trips(() => store.claim("owner", 60_000, { limit: 2, tools })),
      ];
      // The first time the server learns the scripts, and the store the server.
      if (warm === 1) expect(measured).toEqual([1, 1, 1, 1, 1, 1, 2]);
    }
  });
});
