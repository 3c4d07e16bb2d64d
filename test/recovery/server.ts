/*
 * One process of a fleet: an MCP server over HTTP on the built packages, which can be told to kill itself at a chosen moment.
 * `server.ts <config as JSON>`; tells its parent the port it listens on.
 */
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

import { isTerminal, type TaskStore } from "@longjobs/core";
import { createTasks, type ToolTask } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { killAt, type KillPoint } from "./kill-point.ts";
import { openStore, type StorePlace } from "./open-store.ts";
import { bearWitness, type Sight } from "./witness.ts";

/** What a process is told when it starts. */
export interface ServerConfig {
  readonly place: StorePlace;
  readonly witness: string;
  readonly port: number;
  readonly leaseMs: number;
  readonly kill?: KillPoint;
}

const config = JSON.parse(process.argv[2] ?? "{}") as ServerConfig;
const moment = killAt(config.kill);
const tasks = createTasks({
  store: watched(await openStore(config.place)),
  scope: null,
  pollIntervalMs: 20,
  waitPollMs: 100,
  leaseMs: config.leaseMs,
  idempotencySecret: "the same secret in every process of this fleet",
});

const steps = z.object({ steps: z.number().int() });

tasks.taskTool(
  "count",
  { inputSchema: steps, inlineBudgetMs: 0, onInterrupted: "resume", maxAttempts: 1_000 },
  (args, task) => count(args.steps, task),
);

tasks.taskTool("count_once", { inputSchema: steps, inlineBudgetMs: 0 }, (args, task) =>
  count(args.steps, task),
);

tasks.taskTool(
  "greet",
  { inlineBudgetMs: 0, onInterrupted: "resume", maxAttempts: 1_000 },
  async (_args, task) => {
    see(task, { did: "began" });
    moment("handler begins");
    const answer = await task.ask({ prompt: "Who?" });
    see(task, { did: "returned", answer });
    return { content: [{ type: "text", text: `Hello, ${answer}!` }] };
  },
);

const handler = createMcpHandler(() => {
  const mcp = new McpServer({ name: "fleet", version: "1.0.0" });
  tasks.attach(mcp);
  return mcp;
});
const serve = toNodeHandler(handler);
const server = createServer(
  (request, response) => void serve(request as Parameters<typeof serve>[0], response),
);
server.listen(config.port, "127.0.0.1", () => process.send?.({ listening: true }));

/** Counts from the checkpoint on, and saves each step before it begins the next. */
async function count(to: number, task: ToolTask): Promise<{ content: { type: "text"; text: string }[] }> {
  see(task, { did: "began" });
  moment("handler begins");
  for (let step = ((task.checkpoint as number | undefined) ?? 0) + 1; step <= to; step += 1) {
    await delay(5, undefined, { signal: task.signal });
    see(task, { did: "stepped", step });
    moment("step is done");
    await task.saveCheckpoint(step);
    see(task, { did: "saved", step });
    void task.progress({ done: step, total: to });
  }
  see(task, { did: "returned" });
  return { content: [{ type: "text", text: `Counted to ${to}.` }] };
}

function see({ taskId, attempt }: ToolTask, sight: Omit<Sight, "pid" | "taskId" | "attempt">): void {
  bearWitness(config.witness, { taskId, attempt, ...sight });
}

/** The store, with the moments of its writes. Everything else it can do is passed on. */
function watched(store: TaskStore): TaskStore {
  const writes: Partial<TaskStore> & { claim?: (...args: unknown[]) => Promise<unknown[]> } = {
    create: async (record) => {
      moment("create begins");
      await store.create(record);
      bearWitness(config.witness, { taskId: record.taskId, attempt: 0, did: "created" });
      moment("create is durable");
    },
    update: async (taskId, patch, expectedVersion) => {
      const ends = patch.status !== undefined && isTerminal(patch.status);
      moment(ends ? "completion begins" : "update begins");
      const version = await store.update(taskId, patch, expectedVersion);
      moment(ends ? "completion is durable" : "update is durable");
      return version;
    },
    claim: async (...args) => {
      const claim = Reflect.get(store, "claim") as (...args: unknown[]) => Promise<unknown[]>;
      const claimed = await claim.apply(store, args);
      if (claimed.length > 0) moment("claim is durable");
      return claimed;
    },
  };
  return new Proxy(store, {
    get(target, name) {
      const own: unknown = Reflect.get(writes, name);
      const member: unknown = Reflect.get(target, name, target);
      if (own !== undefined && member !== undefined) return own;
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}
