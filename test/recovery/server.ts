/*
 * One process of a fleet: an MCP server over HTTP on the built packages, which can be told to kill itself at a chosen moment.
 * `server.ts <config as JSON>`; tells its parent the port it listens on.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

import { isTerminal, type LongJobsError, type TaskRecord, type TaskStore } from "@longjobs/core";
import { createTasks, type ToolTask } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { killAt, type KillPoint } from "./kill-point.ts";
import { openStore, type StorePlace } from "./open-store.ts";
import { bearWitness, type Sight, type Write } from "./witness.ts";

/** What a process is told when it starts. */
export interface ServerConfig {
  readonly place: StorePlace;
  readonly witness: string;
  readonly port: number;
  readonly leaseMs: number;
  /** How far the clock of this process is ahead of the others. */
  readonly clockSkewMs?: number;
  readonly kill?: KillPoint;
}

const config = JSON.parse(process.argv[2] ?? "{}") as ServerConfig;
const moment = killAt(config.kill, () => bearWitness(config.witness, { did: "stopped" }));
// A busy machine makes a short lease lapse now and then.
const onError = (error: unknown): void =>
  bearWitness(config.witness, { did: "reported", reason: String(error) });
const tasks = createTasks({
  store: watched(await openStore(config.place, onError)),
  scope: null,
  pollIntervalMs: 20,
  waitPollMs: 100,
  leaseMs: config.leaseMs,
  now: () => Date.now() + (config.clockSkewMs ?? 0),
  onError,
});

const steps = z.object({ steps: z.number().int(), asks: z.boolean().optional() });

tasks.taskTool(
  "count",
  { inputSchema: steps, inlineBudgetMs: 0, onInterrupted: "resume", maxAttempts: 1_000 },
  async ({ steps: to, asks }, task) => {
    const result = await count(to, task);
    // Whoever goes on after another is held up here.
    if (asks === true && task.attempt > 1) await task.ask({ prompt: "Go on?" });
    return result;
  },
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

tasks.taskTool("linger", { inlineBudgetMs: 0, onInterrupted: "resume" }, async (_args, task) => {
  see(task, { did: "began" });
  await once(task.signal, "abort");
  throw task.signal.reason;
});

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
  const { step: done } = (task.checkpoint ?? { step: 0 }) as { step: number };
  for (let step = done + 1; step <= to; step += 1) {
    await delay(5, undefined, { signal: task.signal });
    see(task, { did: "stepped", step });
    moment("step is done");
    await task.saveCheckpoint({ step, attempt: task.attempt });
    see(task, { did: "saved", step });
    void task.progress({ done: step, total: to });
  }
  see(task, { did: "returned" });
  return { content: [{ type: "text", text: `Counted to ${to}.` }] };
}

function see({ taskId, attempt, signal }: ToolTask, sight: Pick<Sight, "did" | "step" | "answer">): void {
  bearWitness(config.witness, { taskId, attempt, ...sight });
  if (sight.did !== "began") return;
  signal.addEventListener("abort", () => {
    const { code: reason } = signal.reason as LongJobsError;
    bearWitness(config.witness, { taskId, attempt, did: "aborted", reason });
  });
}

/** The store, with the moments of its writes, and a witness of each that was accepted. Everything else is passed on. */
function watched(store: TaskStore): TaskStore {
  const note = (taskId: string, write: Write): void =>
    bearWitness(config.witness, { taskId, did: "wrote", write });
  const writes: Partial<TaskStore> & { claim?: (...args: unknown[]) => Promise<TaskRecord[]> } = {
    create: async (record) => {
      moment("create begins");
      await store.create(record);
      if (record.work !== undefined) bearWitness(config.witness, { taskId: record.taskId, did: "created" });
      note(record.taskId, { version: record.version, heldBy: record.lease?.token });
      moment("create is durable");
    },
    update: async (taskId, patch, expectedVersion) => {
      const ends = patch.status !== undefined && isTerminal(patch.status);
      moment(ends ? "completion begins" : "update begins");
      const version = await store.update(taskId, patch, expectedVersion);
      const saved = patch.checkpoint?.value as { attempt: number } | undefined;
      note(taskId, { version, begun: patch.attempt, savedBy: saved?.attempt, endedBy: patch.finishedBy });
      moment(ends ? "completion is durable" : "update is durable");
      return version;
    },
    claim: async (...args) => {
      const claim = Reflect.get(store, "claim") as (...args: unknown[]) => Promise<TaskRecord[]>;
      const claimed = await claim.apply(store, args);
      bearWitness(config.witness, { did: "looked" });
      for (const { taskId, version, lease } of claimed) note(taskId, { version, heldBy: lease?.token });
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
