import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { describe, expect, it, test, vi } from "vitest";

import {
  conformanceChecks,
  runTaskStoreConformance,
  type RunnerOptions,
  type StoreFactory,
} from "../src/index.ts";
import { mutants } from "./mutants/index.ts";
import { referenceFactory } from "./support/reference-task-store.ts";

// The shape of vitest, for real: the right store on every profile it can claim.
runTaskStoreConformance("ReferenceTaskStore", referenceFactory(), {
  runner: { describe, it },
  profile: "shared",
});

const wrongStore = mutants.find(({ caughtBy }) => caughtBy.join() === "update.applies-patch")?.Store;

describe("the shape of node:test", () => {
  test("a right store passes; the checks of a higher profile are shown as skipped", () => {
    const { status, stdout } = runNodeTest("right");
    expect(stdout).toMatch(/fail 0/);
    expect(stdout).toMatch(/skipped [1-9]/);
    expect(status).toBe(0);
  });

  test("a wrong store fails, and the output names the check", () => {
    const { status, stdout } = runNodeTest("wrong");
    expect(status).not.toBe(0);
    expect(stdout).toMatch(/fail 1/);
    expect(stdout).toContain("update.applies-patch (C8)");
  });
});

describe("the shape of jest", () => {
  test("test functions take no parameter: jest would wait for a callback", () => {
    const { tests } = register(referenceFactory(), {});
    expect(tests.map(({ body }) => body.length)).toEqual(tests.map(() => 0));
  });

  test("a right store passes without a context that can skip", async () => {
    const { tests } = register(referenceFactory(), {});
    const outcomes = await Promise.allSettled(tests.map(({ body }) => body()));
    expect(outcomes.filter(({ status }) => status === "rejected")).toEqual([]);
  });

  test("a wrong store fails in the test of the check", async () => {
    const { tests } = register(referenceFactory(wrongStore), {});
    const failed: string[] = [];
    for (const { title, body } of tests) await body().catch(() => failed.push(title));
    expect(failed).toEqual([expect.stringMatching(/^update\.applies-patch \(C8\): /)]);
  });
});

describe("what is registered", () => {
  test("a profile brings its own checks and those of the profiles below it", () => {
    const ids = (profile: RunnerOptions["profile"] & string): string[] =>
      conformanceChecks.filter((check) => check.profile === profile).map(({ id }) => id);
    expect(register(referenceFactory(), { profile: "volatile" }).ids).toEqual(ids("volatile"));
    const durable = register(referenceFactory(), { profile: "durable" }).ids;
    expect(durable.toSorted()).toEqual([...ids("volatile"), ...ids("durable")].toSorted());
    expect(register(referenceFactory(), { profile: "shared" }).ids).toEqual(
      conformanceChecks.map(({ id }) => id),
    );
  });

  test("a known fault is skipped through the context, with its reason", async () => {
    const skips = [{ id: "update.applies-patch", reason: "its clock is its own" }];
    const { tests } = register(referenceFactory(wrongStore), { skips });
    const context = { skip: vi.fn<(reason: string) => void>() };
    await tests.find(({ title }) => title.startsWith("update.applies-patch"))?.body(context);
    expect(context.skip).toHaveBeenCalledExactlyOnceWith("its clock is its own");
  });

  test("a skip of a check that would pass fails", async () => {
    const skips = [{ id: "update.applies-patch", reason: "repaired long ago" }];
    const { tests } = register(referenceFactory(), { skips });
    const skipped = tests.find(({ title }) => title.startsWith("update.applies-patch"));
    await expect(skipped?.body()).rejects.toThrow();
  });

  test("a skip of a check that does not exist is a test that fails", async () => {
    const { tests } = register(referenceFactory(), {
      skips: [{ id: "update.apply-patch", reason: "misspelt" }],
    });
    await expect(tests[0]?.body()).rejects.toThrow("update.apply-patch");
  });

  test("an unknown profile is a TypeError at the call", () => {
    expect(() => register(referenceFactory(), { profile: "durabel" as "durable" })).toThrow(TypeError);
  });
});

interface Registered {
  readonly title: string;
  readonly body: (...args: unknown[]) => Promise<void>;
}

function register(
  factory: StoreFactory,
  options: Omit<RunnerOptions, "runner">,
): { tests: Registered[]; ids: string[] } {
  const tests: Registered[] = [];
  const runner = {
    describe: (_name: string, body: () => void): void => body(),
    it: (title: string, body: Registered["body"]): void => {
      tests.push({ title, body });
    },
  };
  runTaskStoreConformance("store", factory, { ...options, runner });
  return { tests, ids: tests.map(({ title }) => title.slice(0, title.indexOf(" "))) };
}

function runNodeTest(store: "right" | "wrong"): { status: number | null; stdout: string } {
  const file = fileURLToPath(new URL("node-test/child.ts", import.meta.url));
  const env = { ...process.env, LONGJOBS_TEST_STORE: store };
  return spawnSync(process.execPath, ["--test", "--test-reporter=spec", file], { env, encoding: "utf8" });
}
