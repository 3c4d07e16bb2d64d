/*
 * 10,000 requests, each with a server instance of its own, and subscriptions among them, on the built packages. Needs --expose-gc. Tells its parent what is
 * left of them.
 */
import { MemoryTaskStore } from "@longjobs/core";
import { createTasks } from "@longjobs/tasks";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { modernFrame } from "../frames.ts";

/** What is left after so many requests. */
export interface Remains {
  readonly requests: number;
  readonly heapBytes: number;
  readonly servers: number;
  readonly watches: number;
  readonly records: number;
  readonly stats: { readonly [name: string]: number };
}

let skewMs = 0;
let watches = 0;
const now = (): number => Date.now() + skewMs;
const store = new MemoryTaskStore({ now });
const watch = store.watch.bind(store);
store.watch = async (taskId, onChange) => {
  const end = await watch(taskId, onChange);
  watches += 1;
  return async () => {
    watches -= 1;
    await end();
  };
};

const tasks = createTasks({ store, scope: null, now, retentionMs: 1_000, leaseMs: 100, pollIntervalMs: 10 });
tasks.taskTool("echo", { inputSchema: z.object({ n: z.number() }) }, ({ n }) => text(`${n}`));
tasks.taskTool("task", { inlineBudgetMs: 0 }, () => text("done"));
tasks.taskTool("ask", {}, async (_args, task) => {
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } } as const;
  await task.requestInput({
    who: { method: "elicitation/create", params: { mode: "form", message: "Who?", requestedSchema } },
  });
  return text("answered");
});

const made: WeakRef<McpServer>[] = [];
const handler = tasks.wrapHandler(
  createMcpHandler(() => {
    const mcp = new McpServer({ name: "test", version: "1.0.0" });
    made.push(new WeakRef(mcp));
    tasks.attach(mcp);
    return mcp;
  }),
);

const rounds = 1_000;
const remains: Remains[] = [];
for (let round = 1; round <= rounds; round += 1) {
  await tenRequests(round);
  if (round === rounds / 5 || round === rounds) remains.push(await takeStock());
}
process.send?.(remains);
await tasks.close();

async function tenRequests(round: number): Promise<void> {
  await send("server/discover", {});
  await send("tools/list", {});
  await send("tools/call", { name: "echo", arguments: { n: round } });
  await send("tools/call", { name: "echo", arguments: { n: "bad" } });
  await send("tasks/get", { taskId: `unknown-${round}` });
  const { taskId } = await send("tools/call", { name: "task" });
  await send("tasks/get", { taskId });
  const asking = (await send("tools/call", { name: "ask" })).taskId;
  const stream = await subscribe(asking);
  if (round % 2 === 0) await stream.cancel();
  const inputResponses = { who: { action: "accept", content: { name: "Ada" } } };
  await send("tasks/update", { taskId: asking, inputResponses });
  await send("tasks/cancel", { taskId: asking });
  // The other half ends with the task.
  while (!(await stream.read()).done);
}

/** Reads the acknowledgement and the first state of a task. */
async function subscribe(taskId: string | undefined): Promise<ReadableStreamDefaultReader> {
  const response = await post("subscriptions/listen", { notifications: { taskIds: [taskId] } });
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("The server sent no stream.");
  await reader.read();
  await reader.read();
  return reader;
}

async function send(method: string, params: object): Promise<{ taskId?: string }> {
  const response = await post(method, params);
  const { result = {} } = (await response.json()) as { result?: { taskId?: string } };
  return result;
}

async function post(method: string, params: object): Promise<Response> {
  const { name, taskId } = params as { name?: string; taskId?: string };
  const routed = name ?? taskId;
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(routed === undefined ? {} : { "mcp-name": routed }),
  };
  const body = JSON.stringify(modernFrame(method, params));
  return handler.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", headers, body }));
}

async function takeStock(): Promise<Remains> {
  // An hour later every task of the test has expired.
  skewMs += 60 * 60 * 1_000;
  await store.sweep();
  for (let turn = 0; turn < 10; turn += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    globalThis.gc?.();
  }
  return {
    requests: made.length,
    heapBytes: process.memoryUsage().heapUsed,
    servers: made.filter((reference) => reference.deref() !== undefined).length,
    watches,
    records: store.size,
    stats: { ...tasks.stats() },
  };
}

function text(words: string) {
  return { content: [{ type: "text", text: words }] };
}
