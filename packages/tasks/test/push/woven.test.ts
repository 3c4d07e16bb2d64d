/* Push in front of a listen route that is played here: what an SDK may do that the current ones do not, or not when a test wants it. */
import { getEventListeners } from "node:events";

import { expect, test } from "vitest";

import { EventSubscriber } from "../support/event-subscriber.ts";
import { modernFrame } from "../support/frames.ts";
import { HttpDoor, routingHeaders } from "../support/http-door.ts";
import { startTasks, takeErrors } from "../support/started-tasks.ts";
import { gatedTool } from "../support/tools.ts";
import { gate, nextTurn } from "../support/turns.ts";

/** The SDK's side of one stream. */
interface Route {
  readonly event: (message: object) => void;
  readonly end: () => void;
  readonly breakOff: () => void;
  readonly isOver: () => boolean;
  /** Events that nobody has taken. */
  readonly queued: () => number;
  readonly requests: Request[];
}

interface RouteOptions {
  readonly notifications?: object;
  readonly first?: object;
  /** Runs before the answer. */
  readonly before?: () => Promise<void> | void;
}

async function open(options: RouteOptions = {}) {
  const { notifications = { toolsListChanged: true }, before } = options;
  const started = startTasks({ progressIntervalMs: 0 });
  const tool = gatedTool(started.tasks, "work");
  const door = new HttpDoor(started.tasks);
  const taskId = await door.startTask("work");
  const idle = started.tasks.stats().watchedTasks;
  const frame = modernFrame("subscriptions/listen", {
    notifications: { ...notifications, taskIds: [taskId] },
  });
  const _meta = { "io.modelcontextprotocol/subscriptionId": frame.id };
  const requests: Request[] = [];
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let over = false;
  const event = (message: object): void =>
    controller?.enqueue(new TextEncoder().encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`));
  const handler = started.tasks.wrapHandler({
    fetch: async (request: Request) => {
      requests.push(request);
      await before?.();
      const body = new ReadableStream<Uint8Array>({
        start: (made) => {
          controller = made;
          const method = "notifications/subscriptions/acknowledged";
          event(options.first ?? { jsonrpc: "2.0", method, params: { notifications, _meta } });
        },
        cancel: () => void (over = true),
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
    close: async () => undefined,
  });
  const route: Route = {
    event,
    end: () => controller?.close(),
    breakOff: () => controller?.error(new Error("The stream broke.")),
    isOver: () => over,
    queued: () => 1 - (controller?.desiredSize ?? 1),
    requests,
  };
  const gone = new AbortController();
  const request = new Request("http://127.0.0.1/mcp", {
    method: "POST",
    headers: routingHeaders(frame.method, {}),
    body: JSON.stringify(frame),
    signal: gone.signal,
  });
  const listen = async () => new EventSubscriber(frame.id, await handler.fetch(request));
  const freed = () => started.tasks.stats().watchedTasks <= idle;
  return { ...started, tool, taskId, route, listen, freed, gone, handler, _meta, id: frame.id };
}

const listChanged = (_meta: object) => ({
  jsonrpc: "2.0",
  method: "notifications/tools/list_changed",
  params: { _meta },
});

test("the route gets the request without the tasks", async () => {
  const seen: unknown[] = [];
  const { tasks } = startTasks();
  const handler = tasks.wrapHandler({
    fetch: async (_request: Request, options?: { readonly parsedBody?: unknown }) => {
      seen.push(options?.parsedBody);
      return Response.json({});
    },
    close: async () => undefined,
  });
  const frame = modernFrame("subscriptions/listen", {
    notifications: { taskIds: ["a"], toolsListChanged: true },
  });
  for (const [method, message] of [
    [frame.method, frame],
    ["tools/list", frame],
  ] as const) {
    const request = { method: "POST", headers: routingHeaders(method, {}), body: JSON.stringify(message) };
    await handler.fetch(new Request("http://127.0.0.1/mcp", request));
  }
  const rest = { ...frame, params: { ...frame.params, notifications: { toolsListChanged: true } } };
  expect(seen, "with another header the body is not even read").toEqual([rest, undefined]);
});

test("a route that keeps a stream on which it has nothing to tell is told to end it", async () => {
  const { listen, route, tool, freed } = await open({ notifications: {} });
  const stream = await listen();
  expect(route.isOver()).toBe(true);
  await stream.acknowledged();
  await stream.task();
  tool.gate.open();
  await stream.until("completed");
  await stream.ended();
  await expect.poll(freed).toBe(true);
});

test("nothing follows the route's own end", async () => {
  const { listen, route, tool, _meta, id } = await open();
  const stream = await listen();
  await stream.acknowledged();
  await stream.task();
  route.event({ jsonrpc: "2.0", id, result: { resultType: "complete", _meta } });
  expect(await stream.next()).toMatchObject({ id });
  tool.gate.open();
  await nextTurn();
  route.end();
  expect(await stream.next()).toBeUndefined();
});

test.for(["end", "breakOff"] as const)(
  "a route whose stream stops without a word (%s) ends ours the same way",
  async (stop) => {
    const { listen, route, freed, tool } = await open();
    const stream = await listen();
    await stream.acknowledged();
    await stream.task();
    route[stop]();
    expect(await stream.next()).toBeUndefined();
    expect(freed()).toBe(true);
    tool.gate.open();
  },
);

test("events of the route wait for a slow reader where they are", async () => {
  const { listen, route, freed, tool, _meta } = await open();
  const stream = await listen();
  for (let sent = 0; sent < 50; sent += 1) route.event(listChanged(_meta));
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  expect(route.queued()).toBeGreaterThan(45);
  await stream.acknowledged();
  let came = 0;
  while (came < 50) if ((await stream.next())?.method === "notifications/tools/list_changed") came += 1;
  await stream.close();
  expect([route.isOver(), freed()]).toEqual([true, true]);
  tool.gate.open();
});

test("a client that is gone before it is answered is followed by nothing, and its signal is let go", async () => {
  let left = (): void => undefined;
  const { listen, route, freed, gone, tool } = await open({ before: () => left() });
  left = () => gone.abort();
  const stream = await listen();
  expect(freed()).toBe(true);
  await stream.next();
  expect(await stream.next()).toBeUndefined();
  expect(getEventListeners(route.requests[0]?.signal as AbortSignal, "abort")).toEqual([]);
  tool.gate.open();
});

test("a stream that has ended lets go of the signal of its request", async () => {
  const { listen, route, tool } = await open({ notifications: {} });
  const stream = await listen();
  await stream.acknowledged();
  await stream.task();
  expect(getEventListeners(route.requests[0]?.signal as AbortSignal, "abort")).toHaveLength(1);
  tool.gate.open();
  await stream.until("completed");
  await stream.ended();
  expect(getEventListeners(route.requests[0]?.signal as AbortSignal, "abort")).toEqual([]);
});

test("a handler that closes while a subscription is being opened ends it as soon as it is open", async () => {
  const { listen, store, handler, freed, tool } = await open();
  const reading = gate();
  let asked = 0;
  store.before = (method) => {
    if (method === "get") asked += 1;
    return reading.opened;
  };
  const listening = listen();
  await expect.poll(() => asked).toBe(1);
  await handler.close();
  reading.open();
  const stream = await listening;
  expect(freed()).toBe(true);
  await stream.acknowledged();
  await stream.ended();
  tool.gate.open();
});

test("a route that does not acknowledge is a fault, which is reported and told as one", async () => {
  const started = await open({ first: { jsonrpc: "2.0", method: "notifications/hello" } });
  const stream = await started.listen();
  expect((await stream.next())?.error).toEqual({ code: -32_603, message: "The server could not do this." });
  expect(takeErrors(started)).toMatchObject([{ message: expect.stringContaining("did not acknowledge") }]);
  expect(started.route.isOver()).toBe(true);
  started.tool.gate.open();
});
