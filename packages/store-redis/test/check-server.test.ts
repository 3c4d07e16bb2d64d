import { afterAll, expect, it, onTestFinished } from "vitest";
import { RedisTaskStore } from "../src/index.ts";
import { quietClient } from "./support/clients.ts";
import { findRedis, withOwnServers, withRedis } from "./support/find-redis.ts";
import { record } from "./support/records.ts";
import { testClient, testServer, testStore } from "./support/store-fixture.ts";
import { bulk, stubServer } from "./support/stub-server.ts";
import { waitUntil } from "./support/wait-until.ts";

const found = await findRedis();
afterAll(() => found?.stop());

withOwnServers("P47: the eviction policy", () => {
  it.each(["allkeys-lru", "volatile-ttl", "volatile-lru", "allkeys-random"])(
    "%s: every call rejects and says what to set, until it is set",
    async (policy) => {
      const server = await testServer(["--maxmemory-policy", policy]);
      const { store, client, keyPrefix } = testStore(server.url);
      for (const call of [() => store.create(record("task")), () => store.get("task"), () => store.sweep()]) {
        await expect(call()).rejects.toMatchObject({
          code: "store_unavailable",
          retryable: false,
          recoveryHint: "Set maxmemory-policy to noeviction.",
        });
      }
      expect(await client.keys(`${keyPrefix}:*:t:*`)).toEqual([]);
      await client.config("SET", "maxmemory-policy", "noeviction");
      await store.create(record("task"));
      expect(await store.get("task")).toEqual(record("task"));
    },
  );

  it("a user who may not ask is told so once, through onError, and may go on", async () => {
    const server = await testServer();
    await testClient(server.url).call(
      "ACL",
      "SETUSER",
      "plain",
      "on",
      ">plain",
      "~*",
      "&*",
      "+@all",
      "-info",
      "-config",
    );
    const errors: unknown[] = [];
    const client = testClient(server.url.replace("//", "//plain:plain@"), { enableReadyCheck: false });
    const { store } = testStore(server.url, { client, onError: (error) => errors.push(error) });
    await store.create(record("task"));
    expect(await store.get("task")).toEqual(record("task"));
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ code: "store_unavailable", cause: { code: "store_unavailable" } });
    expect(String(errors[0])).toContain("noeviction");
  });

  it("a user who may not use CONFIG needs not: INFO tells the policy", async () => {
    const server = await testServer(["--maxmemory-policy", "allkeys-lru"]);
    await testClient(server.url).call(
      "ACL",
      "SETUSER",
      "plain",
      "on",
      ">plain",
      "~*",
      "&*",
      "+@all",
      "-config",
    );
    const client = testClient(server.url.replace("//", "//plain:plain@"));
    const { store } = testStore(server.url, { client });
    await expect(store.get("task")).rejects.toMatchObject({ code: "store_unavailable", retryable: false });
  });
});

withOwnServers("a server that starts late", () => {
  it("a server that is away at first is looked at again with the next call", async () => {
    const server = await testServer();
    const client = quietClient(server.port);
    onTestFinished(() => client.disconnect());
    const { store } = testStore(server.url, { client, commandTimeoutMs: 200 });
    await server.kill();
    await expect(store.get("task")).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    await server.restart();
    const answers = (): Promise<boolean> =>
      store.get("task").then(
        (task) => task === undefined,
        () => false,
      );
    await waitUntil(answers, "the store works");
  });
});

it("a service whose INFO says nothing of the policy is reported once, and used", async () => {
  const server = await stubServer((name) => {
    if (name === "info") return bulk("redis_version:7.0.0\r\n");
    return name === "evalsha" ? "*0\r\n" : undefined;
  });
  const client = quietClient(server.port);
  onTestFinished(() => client.disconnect());
  const errors: unknown[] = [];
  const store = new RedisTaskStore({ client, onError: (error) => errors.push(error) });
  expect(await store.get("task")).toBeUndefined();
  expect(await store.get("task")).toBeUndefined();
  expect(errors).toHaveLength(1);
});

withRedis("the format", found, (url) => {
  it("data of a later version are refused with schema_too_new, and nothing is written", async () => {
    const { store, keyPrefix, client } = testStore(url);
    await client.set(`${keyPrefix}:format`, "2");
    await expect(store.create(record("task"))).rejects.toMatchObject({ code: "schema_too_new" });
    await expect(store.claim("owner", 1_000, { limit: 1 })).rejects.toMatchObject({ code: "schema_too_new" });
    expect(await client.keys(`${keyPrefix}*`)).toEqual([`${keyPrefix}:format`]);
  });

  it("a client that is not connected yet is connected by the first call; one that was closed is named", async () => {
    const { store, client, keyPrefix } = testStore(url, { client: testClient(url, { lazyConnect: true }) });
    await store.create(record("task"));
    expect(await store.get("task")).toEqual(record("task"));
    client.disconnect();
    await waitUntil(() => client.status === "end", "the client is closed");
    await expect(new RedisTaskStore({ client, keyPrefix }).get("task")).rejects.toMatchObject({
      code: "store_unavailable",
      retryable: false,
    });
  });
});
