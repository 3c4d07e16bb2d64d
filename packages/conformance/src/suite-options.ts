import { assertProfile, type Profile } from "./check.ts";
import { conformanceChecks } from "./conformance-checks.ts";

/** A check that this store is known not to pass. */
export interface Skip {
  readonly id: string;
  /** Why, for the reader of the report. */
  readonly reason: string;
}

/** What both doors of the suite take. */
export interface SuiteOptions {
  /** What the store claims. @default "volatile" */
  readonly profile?: Profile;
  /** Checks that the store is known not to pass. One that would pass, or an id that no check has, is a failure. */
  readonly skips?: readonly Skip[];
  /** How long one check may take, in milliseconds. @default 20_000 */
  readonly checkDeadlineMs?: number;
}

/** {@link SuiteOptions} with their defaults. */
export interface ResolvedSuiteOptions {
  readonly profile: Profile;
  readonly skips: ReadonlyMap<string, string>;
  readonly checkDeadlineMs: number;
  /** What is wrong with the list of skips, a sentence each. */
  readonly problems: readonly string[];
}

export function resolveSuiteOptions(options: SuiteOptions): ResolvedSuiteOptions {
  const { profile = "volatile", skips = [], checkDeadlineMs = 20_000 } = options;
  assertProfile(profile);
  if (!(checkDeadlineMs > 0)) throw new RangeError("checkDeadlineMs must be a positive number.");
  return {
    profile,
    skips: new Map(skips.map(({ id, reason }) => [id, reason])),
    checkDeadlineMs,
    problems: findSkipProblems(skips),
  };
}

function findSkipProblems(skips: readonly Skip[]): string[] {
  const known = new Set(conformanceChecks.map(({ id }) => id));
  const problems: string[] = [];
  for (const { id, reason } of skips) {
    if (!known.has(id)) problems.push(`No check has the id ${id}; correct the list of skips.`);
    if (reason.trim() === "") problems.push(`The skip of ${id} gives no reason.`);
  }
  return problems;
}
