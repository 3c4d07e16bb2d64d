/* Push on a connection whose server is played here: what goes which way, and what is left. */
import { MemoryTaskStore } from "@longjobs/core";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";

import { modernFrame } from "../support/frames.ts";
import { WatchableSpyStore } from "../support/spy-store.ts";
import { startTasks, takeErrors } from "../support/started-tasks.ts";
import { gate } from "../support/turns.ts";
import type { WireMessage } from "../support/wire.ts";

async function open() {
  const shared = new MemoryTaskStore();
  const there = startTasks({ store: shared });
  const { taskId } = await there.tasks.lifecycle.createTask();
  const store = new WatchableSpyStore(shared);
  const here = startTasks({ store, waitPollMs: 600_000 });
  const [client, far] = InMemoryTransport.createLinkedPair();
  const server = here.tasks.wrapTransport(far);
  const [toClient, toServer]: WireMessage[][] = [[], []];
  Object.assign(client, { onmessage: (message: WireMessage) => void toClient?.push(message) });
  Object.assign(server, { onmessage: (message: WireMessage) => void toServer?.push(message) });
  await client.start();
  await server.start();
  const frame = modernFrame("subscriptions/listen", { notifications: { taskIds: [taskId] } });
  const _meta = { "io.modelcontextprotocol/subscriptionId": frame.id };
  const ask = () => client.send(frame);
  const acknowledge = (notifications: object = {}) =>
    server.send({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: { notifications, _meta },
    });
  return {
    here,
    taskId,
    frame,
    _meta,
    store,
    client,
    server,
    ask,
    acknowledge,
    toClient: toClient as WireMessage[],
    toServer: toServer as WireMessage[],
    watched: () => here.tasks.stats().watchedTasks,
    task: there.tasks.lifecycle.handle(taskId),
  };
}

const cancelled = (requestId: unknown) => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId },
});

test("the server gets the request without the tasks, and is told when the subscription is over", async () => {
  const { ask, acknowledge, frame, task, toClient, toServer, watched } = await open();
  await ask();
  expect(toServer).toEqual([{ ...frame, params: { ...frame.params, notifications: {} } }]);
  await acknowledge();
  await expect.poll(() => toClient.length).toBe(2);
  await task.complete({});
  await expect.poll(() => toClient.length).toBe(4);
  expect(toClient.at(-1)).toMatchObject({ id: frame.id, result: { resultType: "complete" } });
  expect(toServer.at(-1)).toEqual(cancelled(frame.id));
  expect(watched()).toBe(0);
});

test("a subscription that is refused here is over for the server too", async () => {
  const { client, server, toClient, toServer, _meta } = await open();
  const frame = modernFrame("subscriptions/listen", { notifications: { taskIds: "all" } });
  await client.send(frame);
  const params = {
    notifications: {},
    _meta: { ..._meta, "io.modelcontextprotocol/subscriptionId": frame.id },
  };
  await server.send({ jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged", params });
  await expect.poll(() => toClient.length).toBe(1);
  expect(toClient[0]).toMatchObject({ id: frame.id, error: { code: -32_602 } });
  expect(toServer.at(-1)).toEqual(cancelled(frame.id));
});

test("nothing follows the server's own end, and what it listened to is free", async () => {
  const { ask, acknowledge, server, frame, task, toClient, watched, _meta } = await open();
  await ask();
  await acknowledge({ toolsListChanged: true });
  await expect.poll(() => toClient.length).toBe(2);
  expect(watched()).toBe(1);
  await server.send({ jsonrpc: "2.0", id: frame.id, result: { resultType: "complete", _meta } } as never);
  expect(watched()).toBe(0);
  await task.complete({});
  expect(toClient.map(({ id, method }) => id ?? method)).toEqual([
    "notifications/subscriptions/acknowledged",
    "notifications/tasks",
    frame.id,
  ]);
});

test.for(["client", "server"] as const)(
  "a connection that the %s closes frees what it listened to",
  async (side) => {
    const ends = await open();
    await ends.ask();
    await ends.acknowledge();
    await expect.poll(() => ends.toClient.length).toBe(2);
    expect(ends.watched()).toBe(1);
    await ends[side].close();
    expect(ends.watched()).toBe(0);
    await expect.poll(() => ends.store.watched.size).toBe(0);
    await ends.task.complete({});
  },
);

test("a request that takes the id of another one ends that one", async () => {
  const { ask, acknowledge, client, frame, task, toClient, watched } = await open();
  await ask();
  await acknowledge();
  await expect.poll(() => toClient.length).toBe(2);
  await client.send({
    ...frame,
    params: { ...frame.params, notifications: { taskIds: ["nobody"] } },
  });
  expect(watched()).toBe(0);
  await task.complete({});
  expect(toClient.length).toBe(2);
});

test("a client that cancels while its subscription is being opened is not told that it failed", async () => {
  const { ask, acknowledge, client, frame, store, toClient, here } = await open();
  const reading = gate();
  store.before = async () => {
    await reading.opened;
    throw new Error("The store is away.");
  };
  await ask();
  await acknowledge();
  await expect.poll(() => store.calls.length).toBe(1);
  await client.send(cancelled(frame.id) as never);
  reading.open();
  // Its operator is.
  await expect.poll(() => takeErrors(here).length).toBe(1);
  expect(toClient).toEqual([]);
});
