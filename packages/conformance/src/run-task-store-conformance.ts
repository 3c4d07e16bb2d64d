import { profileIncludes, type Check } from "./check.ts";
import { conformanceChecks } from "./conformance-checks.ts";
import { CheckRun, type CheckVerdict } from "./run-check.ts";
import type { StoreFactory } from "./store-under-test.ts";
import { resolveSuiteOptions, type SuiteOptions } from "./suite-options.ts";

/** The functions of a test runner that the suite uses: those of vitest, node:test, jest and their like. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: (title: string, body: () => Promise<void>) => unknown;
  /** Such as `it.skip`: shows the checks that a higher profile would add. */
  readonly skip?: (title: string, body: () => Promise<void>) => unknown;
}

/** Options of {@link runTaskStoreConformance}. */
export interface RunnerOptions extends SuiteOptions {
  readonly runner: TestRunner;
}

/** Registers one test for each check with a test runner. Call it at the top of a test file. */
export function runTaskStoreConformance(name: string, factory: StoreFactory, options: RunnerOptions): void {
  const { runner } = options;
  const { profile, skips, checkDeadlineMs, problems } = resolveSuiteOptions(options);
  const run = new CheckRun(factory, profile, skips, checkDeadlineMs);
  runner.describe(`${name}: the contract of a task store (${profile})`, () => {
    if (problems.length > 0)
      runner.it("the list of skips is right", () => Promise.reject(new Error(problems.join("\n"))));
    for (const check of conformanceChecks) {
      if (profileIncludes(profile, check.profile)) runner.it(titleOf(check), testBody(run, check));
      else runner.skip?.(`${titleOf(check)} (profile ${check.profile})`, () => Promise.resolve());
    }
  });
}

function titleOf({ id, rule, title }: Check): string {
  return `${id} (${rule}): ${title}`;
}

/**
 * The rest parameter keeps the function's length at 0: jest and mocha take a function with a parameter for one
 * that calls back. vitest and node:test pass a context all the same.
 */
function testBody(run: CheckRun, check: Check): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const verdict = await run.run(check);
    if (verdict.outcome === "passed") return;
    if (verdict.outcome === "failed") throw failureOf(verdict);
    markSkipped(args[0], verdict.message ?? "");
  };
}

function failureOf({ message, cause }: CheckVerdict): Error {
  return cause instanceof Error ? cause : new Error(message);
}

/** A runner whose context can skip shows the reason; with the others the test passes. */
function markSkipped(context: unknown, reason: string): void {
  if (typeof context !== "object" || context === null || !("skip" in context)) return;
  if (typeof context.skip === "function") context.skip(reason);
}
