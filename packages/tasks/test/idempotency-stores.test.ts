import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { MemoryTaskStore, type LongJobsError, type TaskRecord, type TaskStore } from "@longjobs/core";
import { WalTaskStore } from "@longjobs/store-wal";
import { afterEach, describe, expect, test } from "vitest";

import type { Tasks } from "../src/index.ts";
import { HttpDoor, type Reply } from "./support/http-door.ts";
import { keyMeta } from "./support/keyed-clients.ts";
import { ServerProcess } from "./support/server-process.ts";
import { startTasks, takeErrors } from "./support/started-tasks.ts";
import { gatedTool, text } from "./support/tools.ts";
import { gate, type Gate } from "./support/turns.ts";

interface Backend {
  readonly store: TaskStore;
  /** The store as a new process finds it. */
  readonly reopen: () => Promise<TaskStore>;
}

let leftOver: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  const all = leftOver;
  leftOver = [];
  for (const remove of all.toReversed()) await remove();
});

async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "longjobs-idempotency-"));
  leftOver.push(() => rm(dir, { recursive: true }));
  return dir;
}

type OpenBackend = (now: () => number) => Promise<Backend>;

/** Any store that a third party might bring: it says nothing of whose it is. */
function fiveMethods(store: TaskStore): TaskStore {
  return {
    create: (record) => store.create(record),
    get: (taskId) => store.get(taskId),
    update: (taskId, patch, version) => store.update(taskId, patch, version),
    sweep: () => store.sweep(),
    close: () => store.close(),
  };
}

const backends: readonly (readonly [string, OpenBackend])[] = [
  [
    "the memory store",
    async (now) => {
      const store = new MemoryTaskStore({ now });
      return { store, reopen: async () => store };
    },
  ],
  [
    "a store of five methods",
    async (now) => {
      const store = fiveMethods(new MemoryTaskStore({ now }));
      return { store, reopen: async () => store };
    },
  ],
  [
    "the log",
    async (now) => {
      const dir = await temporaryDir();
      const store = await WalTaskStore.open({ dir, fsync: false, now });
      leftOver.push(() => store.close());
      const reopen = async (): Promise<TaskStore> => {
        await store.close();
        const later = await WalTaskStore.open({ dir, fsync: false, now });
        leftOver.push(() => later.close());
        return later;
      };
      return { store, reopen };
    },
  ],
];

const keyed = { meta: { [keyMeta]: "k1" } };

function isTask({ kind }: TaskRecord): boolean {
  return kind === undefined;
}

/** The same store, which answers a create of a task only when the gate opens. */
function withLateReply(store: TaskStore, reply: Gate): { readonly late: TaskStore; readonly created: Gate } {
  const created = gate();
  const late = Object.assign(fiveMethods(store), {
    create: async (record: TaskRecord) => {
      await store.create(record);
      if (!isTask(record)) return;
      created.open();
      await reply.opened;
    },
  });
  return { late, created };
}

function call(tasks: Tasks): Promise<Reply> {
  return new HttpDoor(tasks).send("tools/call", { name: "work" }, keyed);
}

describe.each(backends)("on %s", (_name, open) => {
  test("P03: 50 parallel calls with one key on two instances are one run and 50 equal ids", async () => {
    const { store } = await open(Date.now);
    const instances = [startTasks({ store }), startTasks({ store })] as const;
    const tools = instances.map(({ tasks }) => gatedTool(tasks, "work"));
    const doors = [new HttpDoor(instances[0].tasks), new HttpDoor(instances[1].tasks)] as const;
    const calls = Array.from({ length: 50 }, (_, nth) =>
      doors[nth % 2 === 0 ? 0 : 1].startTask("work", {}, keyed),
    );
    const ids = new Set(await Promise.all(calls));
    expect(ids.size).toBe(1);
    await expect.poll(() => tools.flatMap(({ runs }) => runs)).toHaveLength(1);
    for (const tool of tools) tool.gate.open();
    const [taskId = ""] = ids;
    for (const door of doors) await door.until(taskId, "completed");
    for (const door of doors)
      expect((await door.callTool("work", {}, keyed)).content).toEqual(text("done").content);
    expect(tools.flatMap(({ runs }) => runs)).toHaveLength(1);
  });

  test("P02: the key finds its task after a restart", async () => {
    const { store, reopen } = await open(Date.now);
    const first = startTasks({ store });
    const tool = gatedTool(first.tasks, "work");
    tool.gate.open();
    const door = new HttpDoor(first.tasks);
    const taskId = await door.startTask("work", {}, keyed);
    await door.until(taskId, "completed");
    await first.tasks.close();
    const second = startTasks({ store: await reopen() });
    const rerun = gatedTool(second.tasks, "work");
    expect((await new HttpDoor(second.tasks).callTool("work", {}, keyed)).content).toEqual(
      text("done").content,
    );
    expect(rerun.runs).toEqual([]);
  });

  test("work that may begin again goes on under its key: a repeat finds it at work, and gets its result", async () => {
    const { store, reopen } = await open(Date.now);
    const config = { inlineBudgetMs: 0, onInterrupted: "resume" } as const;
    const first = startTasks({ store });
    const tool = gatedTool(first.tasks, "work", config);
    const taskId = await new HttpDoor(first.tasks).startTask("work", {}, keyed);
    await expect.poll(() => tool.runs.length).toBe(1);
    await first.tasks.close();
    const second = startTasks({ store: await reopen() });
    const resumed = gatedTool(second.tasks, "work", config);
    const door = new HttpDoor(second.tasks);
    expect(await door.startTask("work", {}, keyed)).toBe(taskId);
    await expect.poll(() => resumed.runs.map(({ attempt }) => attempt)).toEqual([2]);
    resumed.gate.open();
    await door.until(taskId, "completed");
    expect((await door.callTool("work", {}, keyed)).content).toEqual(text("done").content);
    expect(resumed.runs).toHaveLength(1);
  });

  test("a process that dies between the create and its reply leaves a task that the repeat finds", async () => {
    const { store, reopen } = await open(Date.now);
    const reply = gate();
    const { late, created } = withLateReply(store, reply);
    const first = startTasks({ store: late });
    const tool = gatedTool(first.tasks, "work", { inlineBudgetMs: 60_000 });
    const lost = call(first.tasks);
    await created.opened;
    await first.tasks.close({ shutdownGraceMs: 0 });
    const second = startTasks({ store: await reopen() });
    const rerun = gatedTool(second.tasks, "work", { inlineBudgetMs: 60_000 });
    const { message } = await call(second.tasks);
    const found = message.result?.taskId ?? (message.error?.data as { reason?: unknown })?.reason;
    expect(found).toMatch(/^(?:[0-9a-f]{64}|interrupted)$/);
    expect([...tool.runs, ...rerun.runs]).toEqual([]);
    // What the dead process would have heard later changes nothing.
    reply.open();
    expect((await lost).message.error?.data).toMatchObject({ code: "shutdown", retryable: true });
    // It says that the store did not answer while it closed, and nothing else.
    for (const error of takeErrors(first))
      expect(["store_unavailable", "store_closed"]).toContain((error as LongJobsError).code);
    expect(tool.runs).toEqual([]);
  });

  test("P23: after the expiry the key gives the same id anew, and the work runs again", async () => {
    const clock = { nowMs: Date.now() };
    const now = (): number => clock.nowMs;
    const { store } = await open(now);
    const { tasks } = startTasks({ store, now, sweepIntervalMs: null });
    const tool = gatedTool(tasks, "work");
    tool.gate.open();
    const door = new HttpDoor(tasks);
    const taskId = await door.startTask("work", {}, keyed);
    const { ttlMs } = await door.until(taskId, "completed");
    clock.nowMs += (ttlMs ?? 0) - 1;
    expect((await door.callTool("work", {}, keyed)).content).toEqual(text("done").content);
    clock.nowMs += 1;
    expect(await door.startTask("work", {}, keyed)).toBe(taskId);
    await door.until(taskId, "completed");
    expect(tool.runs).toHaveLength(2);
  });
});

test("P15: SIGKILL in the middle of the work: the repeat is told of it, and another key starts over", async () => {
  const dir = await temporaryDir();
  const servers: ServerProcess[] = [];
  const start = async (): Promise<ServerProcess> => {
    const server = await ServerProcess.start(dir, servers[0]?.port);
    servers.push(server);
    leftOver.push(() => server.kill());
    return server;
  };
  const before = await start();
  const taskId = (await before.call("tools/call", { name: "wait" }, keyed)).result?.taskId ?? "";
  expect((await before.call("tools/call", { name: "wait" }, keyed)).result?.taskId).toBe(taskId);
  await before.kill();
  const after = await start();
  await after.until(taskId, "failed");
  const told = await after.call("tools/call", { name: "wait" }, keyed);
  expect(told.error).toMatchObject({
    code: -32_603,
    data: { reason: "interrupted", recoveryHint: expect.stringContaining("new idempotency key") },
  });
  const other = await after.call("tools/call", { name: "wait" }, { meta: { [keyMeta]: "k2" } });
  expect(other.result).toMatchObject({ resultType: "task", status: "working" });
  expect(other.result?.taskId).not.toBe(taskId);
});
