import { afterEach, describe, expect, test } from "vitest";

import { MemoryTaskStore, TaskLifecycle, type TaskLifecycleOptions } from "../src/index.ts";
import { resolveLifecycleOptions } from "../src/lifecycle-options.ts";
import { startEngine } from "./support/engine.ts";
import { errorOf } from "./support/errors.ts";

const store = new MemoryTaskStore();

afterEach(() => {
  expect(store.size).toBe(0);
});

/** Never a length of time, whichever option it is given to. */
const badDurations: readonly [string, unknown][] = [
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["zero", 0],
  ["a negative number", -1],
  ["a fraction", 1000.5],
  ["an unsafe integer", 2 ** 53],
  ["a string", "1000"],
  ["a BigInt", 1000n],
  ["an object", {}],
];
const durations = [
  "retentionMs",
  "maxRetentionMs",
  "pollIntervalMs",
  "leaseMs",
  "sweepIntervalMs",
  "waitPollMs",
] as const;

function isProgrammersMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

// CASES part 2, engine: "ttlMs:1000.5, pollIntervalMs:-3.7 go out on the wire"; "sweepIntervalMs: NaN/0 accepted (hot timer)".
describe.each(durations)("the engine option %s", (name) => {
  test.each(badDurations)("refuses %s when the engine is made", async (_kind, value) => {
    const options = { store, [name]: value } as unknown as TaskLifecycleOptions;
    expect(await errorOf(() => new TaskLifecycle(options))).toSatisfy(isProgrammersMistake);
  });

  test("takes its default for undefined", () => {
    const options = { store, [name]: undefined } as unknown as TaskLifecycleOptions;
    expect(resolveLifecycleOptions(options)[name]).toBe(resolveLifecycleOptions({ store })[name]);
  });
});

test.each(["leaseMs", "waitPollMs"])("%s does not take null: it cannot be switched off", async (name) => {
  const options = { store, [name]: null } as unknown as TaskLifecycleOptions;
  expect(await errorOf(() => new TaskLifecycle(options))).toBeInstanceOf(TypeError);
});

test.each(["leaseMs", "sweepIntervalMs", "waitPollMs"])(
  "%s does not take more than a timer can wait: such a timer would fire at once (P24)",
  async (name) => {
    const options = { store, [name]: 2 ** 31 } as unknown as TaskLifecycleOptions;
    expect(await errorOf(() => new TaskLifecycle(options))).toBeInstanceOf(RangeError);
  },
);

test("a retention longer than the maximum is refused, and a long one alone raises the maximum", async () => {
  const options = { store, retentionMs: 2_000, maxRetentionMs: 1_000 };
  expect(await errorOf(() => new TaskLifecycle(options))).toBeInstanceOf(RangeError);
  expect(
    await errorOf(() => new TaskLifecycle({ store, retentionMs: null, maxRetentionMs: 1_000 })),
  ).toBeInstanceOf(RangeError);
  const year = 365 * 24 * 60 * 60 * 1000;
  expect(resolveLifecycleOptions({ store, retentionMs: year }).maxRetentionMs).toBe(year);
  expect(resolveLifecycleOptions({ store, retentionMs: null }).maxRetentionMs).toBeNull();
});

describe("jsonLimits", () => {
  test.each(
    (["maxDepth", "maxKeys", "maxBytes"] as const).flatMap((name) =>
      badDurations.map(([kind, value]) => [name, kind, value] as const),
    ),
  )("%s refuses %s: a limit that no number reaches is no limit", async (name, _kind, value) => {
    const options = { store, jsonLimits: { [name]: value } } as unknown as TaskLifecycleOptions;
    expect(await errorOf(() => new TaskLifecycle(options))).toSatisfy(isProgrammersMistake);
  });

  test("a limit that is undefined has its default", () => {
    const jsonLimits = { maxDepth: undefined } as unknown as { maxDepth: number };
    expect(resolveLifecycleOptions({ store, jsonLimits }).jsonLimits.maxDepth).toBe(200);
  });
});

test.each(["validateRequest", "validateAnswer", "onError", "now", "randomId", "random"])(
  "%s must be a function",
  async (name) => {
    for (const value of [null, 1, "now", {}]) {
      const options = { store, [name]: value } as unknown as TaskLifecycleOptions;
      expect(await errorOf(() => new TaskLifecycle(options))).toBeInstanceOf(TypeError);
    }
  },
);

test.each([undefined, null, {}, { create: 1 }, Object.assign(new MemoryTaskStore(), { sweep: undefined })])(
  "a store without the five methods is refused: %s",
  async (notAStore) => {
    const options = { store: notAStore } as unknown as TaskLifecycleOptions;
    expect(await errorOf(() => new TaskLifecycle(options))).toBeInstanceOf(TypeError);
  },
);

describe("a new task", () => {
  test.each(
    (["ttlMs", "retentionMs", "pollIntervalMs"] as const).flatMap((name) =>
      badDurations.map(([kind, value]) => [name, kind, value] as const),
    ),
  )("%s refuses %s, and nothing is created", async (name, _kind, value) => {
    const engine = startEngine({ store });
    const creating = engine.lifecycle.createTask({ [name]: value });
    expect(await errorOf(creating)).toSatisfy(isProgrammersMistake);
  });

  test.each([
    ["scope", ""],
    ["scope", 5],
    ["statusMessage", 5],
    ["work", {}],
    ["work", null],
    ["work", { tool: 5 }],
  ])("%s refuses %j, and nothing is created", async (name, value) => {
    const engine = startEngine({ store });
    expect(await errorOf(engine.lifecycle.createTask({ [name]: value }))).toBeInstanceOf(TypeError);
  });

  test("an id that clients could not send is refused", async () => {
    const engine = startEngine({ store, randomId: () => "../x" });
    expect(await errorOf(engine.lifecycle.createTask())).toBeInstanceOf(TypeError);
  });

  test("a retention beyond the maximum is cut to it", async () => {
    const { lifecycle } = startEngine({ retentionMs: 1_000_000, maxRetentionMs: 2_000_000 });
    expect((await lifecycle.createTask({ retentionMs: 9_000_000 })).ttlMs).toBe(2_000_000);
    expect((await lifecycle.createTask({ retentionMs: null })).ttlMs).toBe(2_000_000);
  });
});

test.each(badDurations.filter(([kind]) => kind !== "zero"))(
  "waitForChange and close refuse %s as a time",
  async (_kind, value) => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const timeoutMs = value as number;
    expect(await errorOf(lifecycle.waitForChange(taskId, { timeoutMs }))).toSatisfy(isProgrammersMistake);
    expect(await errorOf(() => lifecycle.close({ drainMs: timeoutMs }))).toSatisfy(isProgrammersMistake);
    expect(await errorOf(() => lifecycle.close({ shutdownGraceMs: timeoutMs }))).toSatisfy(
      isProgrammersMistake,
    );
    expect(await lifecycle.getTask(taskId)).toMatchObject({ status: "working" });
  },
);

test("waitForChange and close refuse more than a timer can wait (P24)", async () => {
  const { lifecycle } = startEngine();
  const { taskId } = await lifecycle.createTask();
  expect(await errorOf(lifecycle.waitForChange(taskId, { timeoutMs: 2 ** 31 }))).toBeInstanceOf(RangeError);
  expect(await errorOf(() => lifecycle.close({ drainMs: 2 ** 31 }))).toBeInstanceOf(RangeError);
});
