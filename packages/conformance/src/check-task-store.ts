import { profileIncludes, type Check } from "./check.ts";
import { conformanceChecks } from "./conformance-checks.ts";
import { Report, type CheckResult } from "./report.ts";
import { CheckRun } from "./run-check.ts";
import type { StoreFactory } from "./store-under-test.ts";
import { resolveSuiteOptions, type SuiteOptions } from "./suite-options.ts";

/**
 * Runs the suite without a test runner and resolves to what it found. A failing check does not reject: ask
 * `report.ok`.
 *
 * @param name - The store's name, for the report.
 * @param factory - Makes a fresh, isolated store for each check.
 */
export async function checkTaskStore(
  name: string,
  factory: StoreFactory,
  options: SuiteOptions = {},
): Promise<Report> {
  const { profile, skips, checkDeadlineMs, problems } = resolveSuiteOptions(options);
  const run = new CheckRun(factory, profile, skips, checkDeadlineMs);
  const results: CheckResult[] = [];
  for (const check of conformanceChecks) {
    if (profileIncludes(profile, check.profile)) results.push(await timeCheck(run, check));
  }
  return new Report(name, profile, results, problems);
}

async function timeCheck(run: CheckRun, check: Check): Promise<CheckResult> {
  const startedAtMs = performance.now();
  const { outcome, message } = await run.run(check);
  const { id, rule, title } = check;
  const durationMs = Math.round(performance.now() - startedAtMs);
  return { id, rule, title, outcome, durationMs, ...(message === undefined ? {} : { message }) };
}
