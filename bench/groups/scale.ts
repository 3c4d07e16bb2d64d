import { setTimeout as delay } from "node:timers/promises";
import { TaskLifecycle, type TaskRecord } from "@longjobs/core";
import { summarise } from "../measure.ts";
import type { BenchGroup, Row } from "../row.ts";
import { progressPatches, sampleRecord } from "../sample-record.ts";
import { measuredPostgres, measuredRedis, type MeasuredStore } from "../subjects/measured-store.ts";
import { findPostgres, inSchema } from "../subjects/postgres.ts";
import { findRedis, underPrefix } from "../subjects/redis.ts";

const leaseMs = 600_000;
const atOnce = 64;

/** What the plan for a million tasks rests on: the costs of one call, and how they grow with the number of tasks. */
export const scale: BenchGroup = async function* ({ full, progress }) {
  const [redisUrl, postgresUrl] = await Promise.all([findRedis(), findPostgres()]);
  for (const count of full ? [10_000, 100_000] : [2_000]) {
    const measured = new Map<string, readonly Cost[]>();
    if (redisUrl !== undefined) {
      progress(`Redis with ${count} running tasks`);
      const costs = await underPrefix(redisUrl, async (prefix) =>
        costsOf(await measuredRedis(redisUrl, prefix), count),
      );
      measured.set("Redis", costs);
    }
    if (postgresUrl !== undefined) {
      progress(`Postgres with ${count} running tasks`);
      const costs = await inSchema(postgresUrl, async (schema) =>
        costsOf(await measuredPostgres(postgresUrl, schema), count),
      );
      measured.set("Postgres", costs);
    }
    yield* toRows(`${count} running tasks`, measured);
  }
  const count = full ? 20_000 : 5_000;
  progress("an instance with running tasks");
  yield* toRows(
    `an instance with ${count} running tasks`,
    new Map([["longjobs", [await instanceBytes(count)]]]),
  );
};

/** What one kind of call costs. */
interface Cost {
  readonly what: string;
  readonly unit: string;
  readonly value: number;
}

function* toRows(where: string, measured: ReadonlyMap<string, readonly Cost[]>): Generator<Row> {
  const units = new Map([...measured.values()].flat().map(({ what, unit }) => [what, unit]));
  for (const [what, unit] of units) {
    const figures = [...measured].flatMap(([name, costs]) => {
      const cost = costs.find((other) => other.what === what);
      return cost === undefined ? [] : [[name, summarise([cost.value])] as const];
    });
    yield {
      group: "scale",
      row: `${where}: ${what}`,
      unit,
      figures: Object.fromEntries(figures),
      ratios: [],
    };
  }
}

/** Fills the store with running tasks, then times each kind of call. */
async function costsOf(subject: MeasuredStore, count: number): Promise<Cost[]> {
  const { store } = subject;
  const held = Array.from({ length: count }, () => {
    const record = sampleRecord(crypto.randomUUID());
    const lease = { owner: "bench", token: crypto.randomUUID(), durationMs: leaseMs };
    return { ...record, lease } satisfies TaskRecord;
  });
  const costs: Cost[] = [];
  const spent = async (what: string, times: number, work: () => Promise<unknown>): Promise<void> => {
    const [cpuBefore, loggedBefore] = [await subject.cpuMs(), await subject.loggedBytes()];
    await work();
    const [cpuAfter, loggedAfter] = [await subject.cpuMs(), await subject.loggedBytes()];
    if (cpuBefore !== undefined && cpuAfter !== undefined) {
      const value = ((cpuAfter - cpuBefore) * 1_000) / times;
      costs.push({ what: `${what}, processor time of the server`, unit: "µs", value });
    }
    if (loggedBefore !== undefined && loggedAfter !== undefined) {
      const value = (loggedAfter - loggedBefore) / times;
      costs.push({ what: `${what}, write-ahead log`, unit: "bytes", value });
    }
  };
  const timed = async (what: string, times: number, work: () => Promise<unknown>): Promise<void> => {
    const startMs = performance.now();
    await spent(what, times, async () => {
      await work();
      costs.push({ what, unit: "µs", value: ((performance.now() - startMs) * 1_000) / times });
    });
  };
  const recordAt = (index: number): TaskRecord => held[index % count] as TaskRecord;
  const emptyBytes = await subject.keptBytes();
  await timed("create", count, () => inParallel(count, (index) => store.create(recordAt(index))));
  costs.push({
    what: "kept for each by the server",
    unit: "bytes",
    value: ((await subject.keptBytes()) - emptyBytes) / count,
  });
  await timed("get", 20_000, () => inParallel(20_000, (index) => store.get(recordAt(index).taskId)));
  const updates = Math.min(count, 20_000);
  await timed("progress", updates, () =>
    inParallel(updates, (index) => {
      const { taskId, version } = recordAt(index);
      return store.update(taskId, progressPatches[index % progressPatches.length] ?? {}, version);
    }),
  );
  // As an instance with a thousand running tasks renews them, in one call.
  const leases = held.slice(0, 1_000).map(({ taskId, lease }) => ({ taskId, token: lease.token }));
  await timed("renewal of a lease, 1,000 in a call", 50_000, () =>
    inTurn(50, () => store.renew(leases, leaseMs)),
  );
  await timed("look for work that finds none", 300, () =>
    inTurn(300, () => store.claim("bench", leaseMs, { limit: 10, tools: ["build_report"] })),
  );
  await timed("sweep that finds nothing", 300, () => inTurn(300, () => store.sweep()));
  const bytesBefore = await subject.keptBytes();
  const watched = held.slice(0, 5_000);
  await Promise.all(watched.map(({ taskId }) => store.watch(taskId, () => undefined)));
  if (subject.notifies)
    costs.push({
      what: "kept for each watch by the server",
      unit: "bytes",
      value: ((await subject.keptBytes()) - bytesBefore) / watched.length,
    });
  const seconds = 5;
  await spent("watch for a second in which nothing happens", watched.length * seconds, () =>
    delay(seconds * 1_000),
  );
  await subject.close();
  return costs;
}

async function inTurn(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let done = 0; done < times; done += 1) await call();
}

/** So many at a time, as an instance with many clients calls. */
async function inParallel(calls: number, call: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < calls) {
        const index = next;
        next += 1;
        await call(index);
      }
    }),
  );
}

/** What an instance keeps in memory for each task that it runs, its store aside. */
async function instanceBytes(count: number): Promise<Cost> {
  const kept = new Map<string, TaskRecord>();
  const lifecycle = new TaskLifecycle({
    store: {
      create: (record) => Promise.resolve(void kept.set(record.taskId, record)),
      get: (taskId) => Promise.resolve(kept.get(taskId)),
      update: (_taskId, _patch, version) => Promise.resolve(version + 1),
      sweep: () => Promise.resolve(0),
      close: () => Promise.resolve(),
    },
    sweepIntervalMs: null,
  });
  const gc = (globalThis as { gc?: () => void }).gc ?? ((): void => undefined);
  gc();
  const before = process.memoryUsage().heapUsed;
  for (let made = 0; made < count; made += 1)
    await lifecycle.createTask({ work: { tool: "bench", arguments: {} } });
  gc();
  const value = (process.memoryUsage().heapUsed - before) / count;
  await lifecycle.close({ shutdownGraceMs: 0 });
  return { what: "memory of each, its record included", unit: "bytes", value };
}
