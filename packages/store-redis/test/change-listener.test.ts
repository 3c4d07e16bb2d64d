import { setTimeout as delay } from "node:timers/promises";
import { TaskLifecycle } from "@longjobs/core";
import { Redis } from "ioredis";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { ChangeListener } from "../src/change-listener.ts";
import { RedisTaskStore, type RedisConnection } from "../src/index.ts";
import { quietClient } from "./support/clients.ts";
import { findRedis, withOwnServers, withRedis } from "./support/find-redis.ts";
import { record } from "./support/records.ts";
import { freshPrefix, testClient, testServer, testStore } from "./support/store-fixture.ts";
import { freePort } from "./support/free-port.ts";
import { BREAK, stubServer } from "./support/stub-server.ts";
import { startTcpProxy, type TcpProxy } from "./support/tcp-proxy.ts";
import { waitUntil } from "./support/wait-until.ts";

const found = await findRedis();
afterAll(() => found?.stop());

async function testProxy(port: number): Promise<TcpProxy> {
  const proxy = await startTcpProxy(port);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** Counts the hints for one task. */
async function listen(
  store: RedisTaskStore,
  taskId: string,
): Promise<{ count: number; end: () => Promise<void> }> {
  const hints = { count: 0, end: () => Promise.resolve() };
  hints.end = await store.watch(taskId, () => {
    hints.count += 1;
  });
  return hints;
}

withRedis("notifications", found, (url) => {
  it("the first watch opens one connection for all, and close() ends it, not the client's", async () => {
    const { store, client } = testStore(url, {
      client: testClient(url, { connectionName: freshPrefix(url) }),
    });
    const count = async (): Promise<number> => {
      const list = (await client.call("CLIENT", "LIST")) as string;
      return list.split("\n").filter((line) => line.includes(`name=${client.options.connectionName}`)).length;
    };
    await store.create(record("task"));
    expect(await count()).toBe(1);
    const ends = await Promise.all(
      Array.from({ length: 50 }, (_, index) => store.watch(`task-${index}`, () => {})),
    );
    expect(await count()).toBe(2);
    for (const end of ends) await end();
    await store.close();
    await waitUntil(async () => (await count()) === 1, "the listening connection ends");
    expect(await client.ping()).toBe("PONG");
  });

  it("a task that nobody watches any more is not listened to, and one that is watched twice is", async () => {
    const { store, keyPrefix, client } = testStore(url);
    const channels = async (): Promise<unknown> => client.call("PUBSUB", "CHANNELS", `${keyPrefix}*`);
    const ends = await Promise.all([store.watch("task", () => {}), store.watch("task", () => {})]);
    expect(await channels()).toHaveLength(1);
    await ends[0]?.();
    await ends[0]?.();
    expect(await channels()).toHaveLength(1);
    await ends[1]?.();
    await waitUntil(async () => ((await channels()) as unknown[]).length === 0, "the channel is left");
  });

  it("the prefix that a client puts in front of keys does not keep stores from hearing each other", async () => {
    const keyPrefix = freshPrefix(url);
    const stores = [0, 1].map(
      () =>
        testStore(url, { client: testClient(url, { keyPrefix: `${keyPrefix}:` }), keyPrefix: "inner" }).store,
    );
    await stores[0]?.create(record("task"));
    const hints = await listen(stores[1] as RedisTaskStore, "task");
    await stores[0]?.update("task", { statusMessage: "changed" }, 1);
    await waitUntil(() => hints.count > 0, "a hint across stores");
  });

  it("a listener that throws is reported, and the others are called", async () => {
    const errors: unknown[] = [];
    const { store } = testStore(url, { onError: (error) => errors.push(error) });
    await store.create(record("task"));
    await store.watch("task", () => {
      throw new Error("of the listener");
    });
    const hints = await listen(store, "task");
    await store.update("task", { statusMessage: "changed" }, 1);
    await waitUntil(() => hints.count > 0, "the other listener is called");
    expect(errors).toEqual([new Error("of the listener")]);
  });

  it("P48: hints that are doubled, late, made up or for other tasks change no answer", async () => {
    const { worker, waiter, keyPrefix, client } = twoEngines(url, {});
    const { taskId } = await worker.createTask();
    const waiting = waiter.waitForChange(taskId, { timeoutMs: 20_000 });
    const channels = async (): Promise<string[]> =>
      (await client.call("PUBSUB", "CHANNELS", `${keyPrefix}*`)) as string[];
    await waitUntil(async () => (await channels()).length > 0, "the waiter listens");
    for (const channel of await channels()) {
      for (let repeat = 0; repeat < 50; repeat += 1) await client.publish(channel, "made up");
    }
    await client.publish(`${keyPrefix}:{0}:t:another`, "1");
    await worker.handle(taskId).complete({ content: [] });
    expect(await waiting).toMatchObject({ status: "completed" });
    for (const channel of await channels()) await client.publish(channel, "late");
    expect(await waiter.getTask(taskId)).toMatchObject({ status: "completed" });
  });
});

/** An engine that works and one that waits, each with a store of its own on the same keys. */
function twoEngines(
  url: string,
  { workerUrl = url, waiterClient = testClient(url) }: { workerUrl?: string; waiterClient?: Redis },
): { worker: TaskLifecycle; waiter: TaskLifecycle; keyPrefix: string; client: Redis; errors: unknown[] } {
  const keyPrefix = freshPrefix(url);
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const options = { keyPrefix, onError, commandTimeoutMs: 500 };
  const engines = [testClient(workerUrl), waiterClient].map((client) => {
    const { store } = testStore(url, { ...options, client });
    const engine = new TaskLifecycle({ store, waitPollMs: 50, onError });
    onTestFinished(() => engine.close());
    return engine;
  }) as [TaskLifecycle, TaskLifecycle];
  return { worker: engines[0], waiter: engines[1], keyPrefix, client: testClient(url), errors };
}

/** A client whose listening connection goes elsewhere. */
function listeningThrough(client: Redis, port: number): Redis {
  const through = Object.create(client) as Redis;
  through.duplicate = ((override: object) => client.duplicate({ ...override, port })) as Redis["duplicate"];
  return through;
}

/** The rule is about this second: it must pass. */
function firstSecond(): Promise<void> {
  return delay(1_000);
}

async function endsByPolling(worker: TaskLifecycle, waiter: TaskLifecycle): Promise<void> {
  const { taskId } = await worker.createTask();
  const waiting = waiter.waitForChange(taskId, { timeoutMs: 20_000 });
  const begun = performance.now();
  await worker.handle(taskId).complete({ content: [] });
  expect(await waiting).toMatchObject({ status: "completed" });
  // The floor is 50 ms; a machine under load may be slower, but not by the timeout of the wait.
  expect(performance.now() - begun).toBeLessThan(10_000);
}

withOwnServers("notifications that do not work", () => {
  it("P48: a user who may not publish: writes succeed, and waits elsewhere end within the poll floor", async () => {
    const server = await testServer();
    await testClient(server.url).call(
      "ACL",
      "SETUSER",
      "mute",
      "on",
      ">mute",
      "~*",
      "+@all",
      "resetchannels",
    );
    const workerUrl = server.url.replace("//", "//mute:mute@");
    const { worker, waiter } = twoEngines(server.url, { workerUrl });
    await endsByPolling(worker, waiter);
    // Not even half a write: the engine would hide a write that happened and was refused.
    const { store } = testStore(server.url, { client: testClient(workerUrl) });
    await store.create(record("task", { work: { tool: "t" } }));
    expect(await store.update("task", { status: "input_required" }, 1)).toBe(2);
    expect(await store.claim("owner", 60_000, { limit: 1, tools: ["t"] })).toHaveLength(1);
  });

  it("P48: a user who may not subscribe: it is reported once, and waits end within the poll floor", async () => {
    const server = await testServer();
    await testClient(server.url).call(
      "ACL",
      "SETUSER",
      "deaf",
      "on",
      ">deaf",
      "~*",
      "&*",
      "+@all",
      "-subscribe",
    );
    const waiterClient = testClient(server.url.replace("//", "//deaf:deaf@"));
    const { worker, waiter, errors } = twoEngines(server.url, { waiterClient });
    for (let wait = 0; wait < 3; wait += 1) await endsByPolling(worker, waiter);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ code: "store_unavailable" });
  });

  it("P48: a cancel reaches a worker that may not subscribe at its next look, long before its heartbeat", async () => {
    const server = await testServer();
    const workerClient = listeningThrough(testClient(server.url), await freePort());
    const keyPrefix = freshPrefix(server.url);
    const options = { keyPrefix, watchPollMs: 20, onError: () => undefined };
    const [worker, other] = [workerClient, testClient(server.url)].map((client) => {
      const { store } = testStore(server.url, { ...options, client });
      const engine = new TaskLifecycle({ store, leaseMs: 600_000, onError: () => undefined });
      onTestFinished(() => engine.close());
      return engine;
    }) as [TaskLifecycle, TaskLifecycle];
    const { taskId } = await worker.createTask();
    const { signal } = worker.handle(taskId);
    await other.cancelTask(taskId);
    await waitUntil(() => signal.aborted, "the worker is told");
    expect(signal.reason).toMatchObject({ code: "cancelled" });
  });

  it("P48: a listening connection that hangs: waits end within the poll floor", async () => {
    const server = await testServer();
    const proxy = await testProxy(server.port);
    const waiterClient = listeningThrough(testClient(server.url), proxy.port);
    const { worker, waiter } = twoEngines(server.url, { waiterClient });
    await endsByPolling(worker, waiter);
    proxy.mode = "silent";
    await endsByPolling(worker, waiter);
  });

  it("P54: in an outage fewer than 10 connections are tried in the first second, and it is reported once", async () => {
    const server = await testServer();
    const proxy = await testProxy(server.port);
    const errors: unknown[] = [];
    const client = listeningThrough(testClient(server.url), proxy.port);
    const onError = (error: unknown): void => void errors.push(error);
    const { store } = testStore(server.url, { client, onError, watchPollMs: 60_000 });
    await store.create(record("task"));
    const hints = await listen(store, "task");
    const before = proxy.connections;
    proxy.mode = "cut";
    await firstSecond();
    const tried = proxy.connections - before;
    expect(tried).toBeGreaterThan(0);
    expect(tried).toBeLessThan(10);
    expect(errors).toHaveLength(1);

    // What changed meanwhile was not heard: who listens is told to look as soon as it is heard again.
    await store.update("task", { statusMessage: "not heard" }, 1);
    expect(hints.count).toBe(0);
    proxy.mode = "open";
    await waitUntil(() => hints.count > 0, "a hint after the outage");
    await store.update("task", { statusMessage: "heard" }, 2);
    const heard = hints.count;
    await waitUntil(() => hints.count > heard || hints.count > 1, "hints come again");
    expect(errors).toHaveLength(1);
  });

  it("P54: Sentinels that are all away are not stormed either", async () => {
    const stub = await stubServer(() => BREAK);
    const client = new Redis({
      sentinels: [{ host: "127.0.0.1", port: stub.port }],
      name: "tasks",
      lazyConnect: true,
    });
    const store = new RedisTaskStore({ client, onError: () => undefined });
    await store.watch("task", () => {});
    await firstSecond();
    expect(stub.connections).toBeGreaterThan(1);
    expect(stub.connections).toBeLessThan(10);
    await store.close();
    client.disconnect();
  });

  it("P54: a server that takes a connection and breaks it at once is not stormed either", async () => {
    const server = await testServer();
    const stub = await stubServer((name) => (name === "subscribe" ? BREAK : undefined));
    const errors: unknown[] = [];
    const client = listeningThrough(testClient(server.url), stub.port);
    const { store } = testStore(server.url, { client, onError: (error) => errors.push(error) });
    await store.watch("task", () => {});
    await firstSecond();
    const tried = stub.commands.filter((name) => name === "subscribe").length;
    expect(tried).toBeGreaterThan(1);
    expect(tried).toBeLessThan(10);
    expect(errors).toHaveLength(1);
  });

  it("a watch while the server is away resolves at once, and is heard when it is back", async () => {
    const server = await testServer();
    const client = quietClient(server.port);
    onTestFinished(() => client.disconnect());
    const { store } = testStore(server.url, { client, commandTimeoutMs: 10_000, onError: () => undefined });
    await store.create(record("task", { work: { tool: "t" } }));
    const first = await listen(store, "task");
    await server.kill();
    await waitUntil(() => client.status !== "ready", "the client notices");
    const second = await listen(store, "task");
    await server.restart();
    await waitUntil(() => first.count > 0 && second.count > 0, "both are told to look");
  });
});

/** A connection that does what the test says. */
function fakeConnection(
  commands: Partial<Record<"subscribe" | "ping", () => Promise<unknown>>>,
): FakeConnection {
  const connection = {
    isDisconnected: false,
    connect: () => Promise.resolve(),
    subscribe: () => Promise.resolve(),
    unsubscribe: () => Promise.resolve(),
    ping: () => Promise.resolve(),
    on: () => undefined,
    disconnect: () => void (connection.isDisconnected = true),
    ...commands,
  };
  return connection as unknown as FakeConnection;
}

type FakeConnection = RedisConnection & { readonly isDisconnected: boolean };

it("a watch resolves when the server has confirmed it, the first one and each that follows", async () => {
  const confirmed: (() => void)[] = [];
  const subscribe = (): Promise<void> => new Promise((resolve) => confirmed.push(resolve));
  const listener = new ChangeListener({
    connect: () => fakeConnection({ subscribe }),
    inTime: (command) => command,
    onHint: () => undefined,
    onHearing: () => undefined,
    onError: undefined,
  });
  onTestFinished(() => listener.close());
  for (const name of ["first", "second"]) {
    let isJoined = false;
    const joining = listener.join(name, name).then(() => (isJoined = true));
    await waitUntil(() => confirmed.length > 0, "the subscription is sent");
    expect(isJoined).toBe(false);
    confirmed.pop()?.();
    await joining;
  }
});

it("a connection that is silent and open is given up at a heartbeat, and replaced", async () => {
  const opened: FakeConnection[] = [];
  const hinted: string[] = [];
  let answering = true;
  let heartbeats = 0;
  const ping = (): Promise<unknown> => {
    heartbeats += 1;
    return answering ? Promise.resolve("PONG") : Promise.reject(new Error("late"));
  };
  const listener = new ChangeListener({
    connect: () => {
      const connection = fakeConnection({ ping });
      opened.push(connection);
      return connection;
    },
    inTime: (command) => command,
    onHint: (taskId) => hinted.push(taskId),
    onHearing: () => undefined,
    onError: () => undefined,
    heartbeatMs: 5,
  });
  onTestFinished(() => listener.close());
  await listener.join("channel", "task");
  await waitUntil(() => heartbeats >= 3, "heartbeats");
  expect(opened).toHaveLength(1);
  answering = false;
  await waitUntil(() => opened.length === 2, "another connection is opened");
  expect(opened[0]?.isDisconnected).toBe(true);
  await waitUntil(() => hinted.includes("task"), "the listener is told to look");
});
