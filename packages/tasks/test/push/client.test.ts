/* The SDK's own client over real sockets and real standard streams, on the code of the guide. */
import { spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { MemoryTaskStore } from "@longjobs/core";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, expect, test } from "vitest";

import { follow, serveWithPush } from "../snippets/push.ts";
import { modernFrame } from "../support/frames.ts";
import { gatedTool } from "../support/tools.ts";
import { assertSubscribed, type WireMessage } from "../support/wire.ts";

let closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.toReversed()) await close();
  closers = [];
});

function newClient(): Client {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
      versionNegotiation: { mode: "auto" },
    },
  );
  closers.push(() => client.close());
  return client;
}

async function listen(server: Server): Promise<URL> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return new URL(`http://127.0.0.1:${address.port}/mcp`);
}

test("over HTTP: two instances on one store, and the client at one of them is told what the other does", async () => {
  const store = new MemoryTaskStore();
  const [one, other] = [serveWithPush(store), serveWithPush(store)];
  closers.push(
    () => one.tasks.close({ shutdownGraceMs: 0 }),
    () => other.tasks.close({ shutdownGraceMs: 0 }),
  );
  const tool = gatedTool(one.tasks, "work");
  const run = one.tasks.lifecycle;
  const { taskId } = await run.createTask();
  const url = await listen(createServer((request, response) => void other.listener(request, response)));
  const client = newClient();
  await client.connect(new StreamableHTTPClientTransport(url));
  const told: { readonly status?: string; readonly statusMessage?: string }[] = [];
  const closed = follow(client, [taskId, "nobody"], (task) => told.push(task));
  await expect.poll(() => told.map(({ status }) => status)).toEqual(["working"]);
  await run.handle(taskId).progress("Reading");
  await expect.poll(() => told.at(-1)).toMatchObject({ statusMessage: "Reading" });
  await run.handle(taskId).complete({ content: [{ type: "text", text: "Read." }] });
  expect(await closed).toBe("graceful");
  expect(told.at(-1)).toMatchObject({ taskId, status: "completed", result: { resultType: "complete" } });
  tool.gate.open();
});

test("over HTTP: an instance that is told to close ends the subscription, and the next one goes on with it", async () => {
  const store = new MemoryTaskStore();
  const [worker, one, other] = [serveWithPush(store), serveWithPush(store), serveWithPush(store)];
  closers.push(() =>
    Promise.all([worker, one, other].map(({ tasks }) => tasks.close({ shutdownGraceMs: 0 }))),
  );
  const { taskId } = await worker.tasks.lifecycle.createTask();
  const urls = [
    await listen(createServer((request, response) => void one.listener(request, response))),
    await listen(createServer((request, response) => void other.listener(request, response))),
  ];
  const told: { readonly status?: string }[] = [];
  const clients = [newClient(), newClient()];
  for (const [index, client] of clients.entries())
    await client.connect(new StreamableHTTPClientTransport(urls[index] as URL));
  const first = follow(clients[0] as Client, [taskId], (task) => told.push(task));
  await expect.poll(() => told.length).toBe(1);
  await one.tasks.close();
  expect(await first).toBe("graceful");
  const second = follow(clients[1] as Client, [taskId], (task) => told.push(task));
  await expect.poll(() => told.length).toBe(2);
  await worker.tasks.lifecycle.handle(taskId).complete({ content: [] });
  expect(await second).toBe("graceful");
  expect(told.map(({ status }) => status)).toEqual(["working", "working", "completed"]);
});

const child = fileURLToPath(new URL("../support/stdio-server/child.ts", import.meta.url));

test("over the standard streams of a real process", async () => {
  const client = newClient();
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [child] }));
  const server = spawn(process.execPath, [child], { stdio: ["pipe", "pipe", "inherit"] });
  closers.push(() => server.kill("SIGKILL"));
  const messages: WireMessage[] = [];
  createInterface({ input: server.stdout }).on("line", (line) =>
    messages.push(JSON.parse(line) as WireMessage),
  );
  const send = (frame: object): void => void server.stdin.write(`${JSON.stringify(frame)}\n`);
  const call = modernFrame("tools/call", { name: "greet", arguments: {} });
  send(call);
  await expect.poll(() => messages.length).toBe(1);
  const taskId = messages[0]?.result?.taskId ?? "";
  const frame = modernFrame("subscriptions/listen", { notifications: { taskIds: [taskId] } });
  send(frame);
  const told = () => messages.filter(({ method }) => method === "notifications/tasks");
  await expect.poll(() => told().at(-1)?.params?.["status"]).toBe("input_required");
  const inputResponses = { who: { action: "accept", content: { name: "Ada" } } };
  send(modernFrame("tasks/update", { taskId, inputResponses }));
  await expect.poll(() => messages.find(({ id }) => id === frame.id)?.result?.resultType).toBe("complete");
  expect(told().at(-1)?.params).toMatchObject({ status: "completed" });
  for (const message of told()) assertSubscribed(message, frame.id);
  const none: object = { taskIds: [taskId] };
  const subscription = await client.listen(none);
  expect(await subscription.closed, "another process with another store does not know the task").toBe(
    "graceful",
  );
});
