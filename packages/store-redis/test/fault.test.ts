import { isLongJobsError, TaskLifecycle } from "@longjobs/core";
import { expect, it, onTestFinished } from "vitest";
import type { RedisTaskStore } from "../src/index.ts";
import { quietClient } from "./support/clients.ts";
import { withOwnServers } from "./support/find-redis.ts";
import { record } from "./support/records.ts";
import { testClient, testServer, testStore } from "./support/store-fixture.ts";
import { startTcpProxy, type TcpProxy } from "./support/tcp-proxy.ts";
import { waitUntil } from "./support/wait-until.ts";

/** A way to a server that ends with the test. */
async function testProxy(port: number): Promise<TcpProxy> {
  const proxy = await startTcpProxy(port);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** A client that tells of a broken connection and makes a new one. */
function clientOn(port: number): ReturnType<typeof quietClient> {
  const client = quietClient(port);
  onTestFinished(() => client.disconnect());
  return client;
}

async function works(store: RedisTaskStore, taskId: string): Promise<boolean> {
  try {
    await store.create(record(taskId));
    return true;
  } catch (error) {
    if (isLongJobsError(error, "task_exists")) return true;
    if (!isLongJobsError(error, "store_unavailable")) throw error;
    return false;
  }
}

withOwnServers("a server in trouble", () => {
  it("a killed connection: calls under way reject with store_unavailable, and the next ones work", async () => {
    const server = await testServer();
    const killer = testClient(server.url);
    const { store } = testStore(server.url, { client: clientOn(server.port), onError: () => undefined });
    await store.create(record("before"));
    for (let kill = 0; kill < 10; kill += 1) {
      const settled = Promise.allSettled(
        Array.from({ length: 20 }, (_, index) => store.create(record(`task-${kill}-${index}`))),
      );
      await killer.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      for (const outcome of await settled) {
        if (outcome.status === "rejected")
          expect(outcome.reason).toMatchObject({ code: "store_unavailable" });
      }
      await waitUntil(() => works(store, `after-${kill}`), "the store works again");
    }
    expect(await store.get("before")).toEqual(record("before"));
  });

  it("a paused server: calls reject in time, and it goes on with what it had", async () => {
    const server = await testServer();
    const { store } = testStore(server.url, { commandTimeoutMs: 200, client: clientOn(server.port) });
    await store.create(record("task", { version: 0 }));
    await store.update("task", { statusMessage: "known" }, 0);
    server.pause();
    const begun = performance.now();
    const calls = [store.get("task"), store.update("task", { statusMessage: "unknown" }, 1)];
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { code: "store_unavailable", retryable: true },
      });
    }
    expect(performance.now() - begun).toBeLessThan(10_000);
    server.resume();
    await waitUntil(() => works(store, "after"), "the store works again");
    // What was sent before the pause happened after it: the answer said that this was unknown.
    expect(await store.get("task")).toMatchObject({ statusMessage: "unknown", version: 2 });
  });

  it("a server with appendonly that is killed and started again has every acknowledged write", async () => {
    const server = await testServer(["--appendonly", "yes", "--appendfsync", "always"]);
    const { store } = testStore(server.url, { commandTimeoutMs: 500, client: clientOn(server.port) });
    await store.create(record("first"));
    const acknowledged = new Map<string, number>();
    const state = { writing: true };
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let round = 0; state.writing; round += 1) {
        const taskId = `task-${writer}-${round}`;
        const written = await store
          .create(record(taskId, { work: { tool: "t" } }))
          .then(() => store.update(taskId, { progress: { done: round } }, 1))
          .catch((error: unknown) => {
            if (!isLongJobsError(error, "store_unavailable")) throw error;
          });
        if (written !== undefined) acknowledged.set(taskId, round);
      }
    });
    await waitUntil(() => acknowledged.size > 100, "some writes are acknowledged");
    await server.kill();
    state.writing = false;
    await Promise.all(writers);
    await server.restart();
    await waitUntil(() => works(store, "after"), "the store works again");
    for (const [taskId, round] of acknowledged) {
      expect(await store.get(taskId), taskId).toMatchObject({ version: 2, progress: { done: round } });
    }
    const claimed = await store.claim("claimer", 1_000, { limit: 100_000, tools: ["t"] });
    expect(claimed.length).toBeGreaterThanOrEqual(acknowledged.size);
  });

  it("while the server is out of reach nothing waits to be sent: a call that was refused never happens later", async () => {
    const server = await testServer();
    const proxy = await testProxy(server.port);
    // Patience of the driver, with which it would keep commands for minutes.
    const client = testClient(`redis://127.0.0.1:${proxy.port}`, {
      maxRetriesPerRequest: null,
      retryStrategy: () => 20,
    });
    const { store } = testStore(server.url, { commandTimeoutMs: 200, client });
    await store.create(record("before"));
    proxy.mode = "cut";
    await waitUntil(() => client.status !== "ready", "the client notices");
    const refused = Array.from({ length: 10 }, (_, index) => store.create(record(`refused-${index}`)));
    for (const outcome of await Promise.allSettled(refused)) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "store_unavailable" } });
    }
    proxy.mode = "open";
    await waitUntil(() => works(store, "after"), "the store works again");
    for (const index of refused.keys()) expect(await store.get(`refused-${index}`)).toBeUndefined();
  });

  it("a half-open connection: calls reject in time, and the store works when the client has a new one", async () => {
    const server = await testServer();
    const proxy = await testProxy(server.port);
    const client = testClient(`redis://127.0.0.1:${proxy.port}`, {
      maxRetriesPerRequest: 0,
      socketTimeout: 500,
      retryStrategy: () => 20,
    });
    const { store } = testStore(server.url, { commandTimeoutMs: 200, client });
    await store.create(record("task"));
    proxy.mode = "silent";
    await expect(store.get("task")).rejects.toMatchObject({ code: "store_unavailable" });
    await waitUntil(() => client.status !== "ready", "the client gives the silent connection up");
    proxy.reset();
    proxy.mode = "open";
    await waitUntil(() => works(store, "after"), "the store works again");
    expect(await store.get("task")).toEqual(record("task"));
  });

  it("a replica that takes no writes: writes reject as retryable, and change nothing", async () => {
    const primary = await testServer();
    const replica = await testServer(["--replicaof", "127.0.0.1", String(primary.port)]);
    const { store: writer, keyPrefix } = testStore(primary.url);
    await writer.create(record("task", { work: { tool: "t" } }));
    const { store } = testStore(replica.url, { keyPrefix });
    await waitUntil(
      async () => (await store.get("task").catch(() => undefined)) !== undefined,
      "the replica follows",
    );
    for (const call of [
      () => store.create(record("other")),
      () => store.update("task", { statusMessage: "refused" }, 1),
      () => store.claim("claimer", 1_000, { limit: 1, tools: ["t"] }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    }
    expect(await writer.get("task")).toEqual(record("task", { work: { tool: "t" } }));
  });

  it("a full server refuses with no_space, changes nothing, and takes what makes room", async () => {
    const server = await testServer(["--maxmemory-policy", "noeviction"]);
    const client = testClient(server.url);
    const { store } = testStore(server.url, { client });
    await store.create(record("task", { ttlMs: 60_000, work: { tool: "t" } }));
    await client.config("SET", "maxmemory", "100kb");
    for (const call of [
      () => store.create(record("other", { data: "x".repeat(100_000) })),
      () => store.update("task", { statusMessage: undefined, data: "x".repeat(100_000) }, 1),
      () => store.claim("claimer", 1_000, { limit: 1, tools: ["t"] }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "no_space" });
    }
    expect(await store.get("task")).toEqual(record("task", { ttlMs: 60_000, work: { tool: "t" } }));
    await client.config("SET", "maxmemory", "0");
    expect(await store.update("task", { data: "room" }, 1)).toBe(2);
  });

  it("P46: a create and a result whose replies were lost are recognised by the engine, and both calls succeed", async () => {
    const server = await testServer();
    const proxy = await testProxy(server.port);
    const { store } = testStore(server.url, { client: clientOn(proxy.port), onError: () => undefined });
    const lifecycle = new TaskLifecycle({ store, onError: () => undefined });
    onTestFinished(() => lifecycle.close());
    const warm = await lifecycle.createTask();
    await lifecycle.handle(warm.taskId).complete({ content: [] });

    const creating = lifecycle.createTask({ work: { tool: "a tool" } });
    await loseReply(proxy, "a tool");
    const { taskId } = await creating;
    expect(await store.get(taskId)).toMatchObject({ status: "working", work: { tool: "a tool" } });

    const completing = lifecycle.handle(taskId).complete({ content: [{ type: "text", text: "the result" }] });
    await loseReply(proxy, "the result");
    await completing;
    expect(await store.get(taskId)).toMatchObject({ status: "completed" });
  });

  it("P46: a create that happened though it was refused is found by its id on retry", async () => {
    const server = await testServer();
    const proxy = await testProxy(server.port);
    const { store } = testStore(server.url, { commandTimeoutMs: 200, client: clientOn(proxy.port) });
    await store.create(record("before"));
    const creating = expect(store.create(record("lost", { version: 7 }))).rejects.toMatchObject({
      code: "store_unavailable",
      retryable: true,
    });
    await loseReply(proxy, "lost");
    await creating;
    expect(await store.get("lost")).toEqual(record("lost", { version: 7 }));
    await expect(store.create(record("lost", { version: 8 }))).rejects.toMatchObject({ code: "task_exists" });
  });
});

/** The server does what the request with this text says; its reply never arrives, and the connection breaks. */
async function loseReply(proxy: TcpProxy, text: string): Promise<void> {
  const before = proxy.kept;
  proxy.deafAfter = text;
  await waitUntil(() => proxy.kept > before, "the server replies");
  proxy.deafAfter = undefined;
  proxy.reset();
  proxy.mode = "open";
}
