import * as fc from "fast-check";
import { expect, test } from "vitest";

import { isTerminal, MemoryTaskStore, type TaskPatch, type TaskRecord } from "../src/index.ts";
import { bareRecord } from "./support/records.ts";

// Every order of creates, updates, claims, renewals, sweeps and time, against the rules C25 to C30 in plain words.

const ids = ["a", "b", "c"];
const tools = ["render", "crawl"];
// Few instants, so that steps often fall on a deadline.
const anyTime = fc.integer({ min: 1, max: 4 });
const anyId = fc.constantFrom(...ids);
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

const anyPatch: fc.Arbitrary<TaskPatch> = fc.record(
  {
    status: fc.constantFrom("working", "working", "working", "input_required", "input_required", "failed"),
    cancelRequestedAt: fc.constant("2026-01-01T00:00:00.000Z"),
    kind: fc.option(fc.constant("transfer"), { nil: undefined, freq: 1 }),
    ttlMs: fc.constantFrom(null, 8, 20),
    lease: maybe(
      fc.record({ owner: fc.constant("x"), token: fc.constantFrom("t1", "t2"), durationMs: anyTime }),
    ),
    work: fc.record({ tool: fc.constantFrom(...tools) }),
  },
  { requiredKeys: [] },
);

type Step =
  | { readonly do: "create" | "update"; readonly taskId: string; readonly patch: TaskPatch }
  | {
      readonly do: "claim";
      readonly leaseMs: number;
      readonly limit: number;
      readonly tools: string[] | undefined;
      readonly taskIds: string[] | undefined;
    }
  | { readonly do: "renew"; readonly leaseMs: number; readonly stale: boolean[] }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "sweep" };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom("create", "update"), taskId: anyId, patch: anyPatch }),
  fc.record({
    do: fc.constant("claim"),
    leaseMs: anyTime,
    limit: fc.integer({ min: 1, max: 4 }),
    tools: fc.option(fc.subarray(tools), { nil: undefined, freq: 1 }),
    taskIds: fc.option(fc.array(anyId, { maxLength: 4 }), { nil: undefined, freq: 1 }),
  }),
  fc.record({
    do: fc.constant("renew"),
    leaseMs: anyTime,
    stale: fc.array(fc.boolean(), { minLength: ids.length, maxLength: ids.length }),
  }),
  fc.record({ do: fc.constant("wait"), ms: anyTime }),
  fc.record({ do: fc.constant("sweep") }),
);

/** What the model knows of one task: the record, its birth, and the deadline that nothing shows. */
interface Known {
  record: TaskRecord;
  readonly bornAtMs: number;
  leaseEndsAtMs: number;
}

class Model {
  readonly tasks = new Map<string, Known>();
  nowMs = 0;

  live(taskId: string): Known | undefined {
    const known = this.tasks.get(taskId);
    if (known === undefined) return undefined;
    const { ttlMs } = known.record;
    return ttlMs !== null && this.nowMs >= known.bornAtMs + ttlMs ? undefined : known;
  }

  claimable(step: Step & { do: "claim" }): string[] {
    return ids.filter((taskId) => {
      const known = this.live(taskId);
      if (known === undefined || isTerminal(known.record.status) || known.record.kind !== undefined)
        return false;
      if (known.record.lease !== undefined && this.nowMs < known.leaseEndsAtMs) return false;
      if (step.taskIds?.includes(taskId) === false) return false;
      const { cancelRequestedAt, work } = known.record;
      return (
        step.tools === undefined || cancelRequestedAt !== undefined || step.tools.includes(work?.tool ?? "")
      );
    });
  }

  written(taskId: string, record: TaskRecord, leased: boolean): void {
    const before = this.live(taskId);
    const leaseEndsAtMs = leased
      ? this.nowMs + (record.lease?.durationMs ?? 0)
      : (before?.leaseEndsAtMs ?? 0);
    this.tasks.set(taskId, { record, bornAtMs: before?.bornAtMs ?? this.nowMs, leaseEndsAtMs });
  }
}

function newRecord(taskId: string, patch: TaskPatch): TaskRecord {
  const present = Object.entries(patch).filter(([, value]) => value !== undefined);
  return bareRecord({ taskId, ...Object.fromEntries(present) });
}

async function take(step: Step, model: Model, store: MemoryTaskStore): Promise<void> {
  if (step.do === "wait") model.nowMs += step.ms;
  if (step.do === "sweep") await store.sweep();
  if (step.do === "create" && model.live(step.taskId) === undefined) {
    const record = newRecord(step.taskId, step.patch);
    await store.create(record);
    model.written(step.taskId, record, true);
  }
  if (step.do === "update") await update(step.taskId, step.patch, model, store);
  if (step.do === "claim") await claim(step, model, store);
  if (step.do === "renew") await renew(step, model, store);
}

async function update(taskId: string, patch: TaskPatch, model: Model, store: MemoryTaskStore): Promise<void> {
  const known = model.live(taskId);
  // Nothing leaves a terminal status: the engine sees to that, and no rule says what a store would do.
  if (known === undefined || isTerminal(known.record.status)) return;
  const version = await store.update(taskId, patch, known.record.version);
  const record = newRecord(taskId, { ...known.record, ...patch });
  model.written(taskId, { ...record, version }, Object.hasOwn(patch, "lease"));
}

async function claim(step: Step & { do: "claim" }, model: Model, store: MemoryTaskStore): Promise<void> {
  const claimable = model.claimable(step);
  const claimed = await store.claim("claimer", step.leaseMs, step);
  expect(claimed).toHaveLength(Math.min(step.limit, claimable.length));
  for (const record of claimed) {
    const before = model.live(record.taskId)?.record;
    const lease = { owner: "claimer", token: record.lease?.token, durationMs: step.leaseMs };
    expect(claimable).toContain(record.taskId);
    expect(record).toEqual({ ...before, version: (before?.version ?? NaN) + 1, lease });
    model.written(record.taskId, record, true);
  }
}

async function renew(step: Step & { do: "renew" }, model: Model, store: MemoryTaskStore): Promise<void> {
  const leases = ids.map((taskId, at) => {
    const token = model.tasks.get(taskId)?.record.lease?.token;
    return { taskId, token: step.stale[at] === true || token === undefined ? "stale" : token };
  });
  const lost = await store.renew(leases, step.leaseMs);
  const expected = leases.filter(({ taskId, token }) => {
    const record = model.live(taskId)?.record;
    return record === undefined || isTerminal(record.status) || record.lease?.token !== token;
  });
  expect(lost).toEqual(expected.map(({ taskId }) => taskId));
  for (const taskId of ids) {
    const known = model.live(taskId);
    if (known !== undefined && !lost.includes(taskId)) known.leaseEndsAtMs = model.nowMs + step.leaseMs;
  }
}

test("in every order of steps the memory store claims and renews what the rules say", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 60, size: "max" }), async (steps) => {
      const model = new Model();
      await using store = new MemoryTaskStore({ now: () => model.nowMs });
      for (const step of steps) {
        await take(step, model, store);
        for (const taskId of ids) expect(await store.get(taskId)).toEqual(model.live(taskId)?.record);
      }
    }),
    { numRuns: Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 300) },
  );
});
