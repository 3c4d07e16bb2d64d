import type { Profile } from "./check.ts";
import type { CheckOutcome } from "./run-check.ts";

/** One line of a {@link Report}. */
export interface CheckResult {
  readonly id: string;
  readonly rule: string;
  readonly title: string;
  readonly outcome: CheckOutcome;
  /** Why it failed, was skipped or does not apply. */
  readonly message?: string;
  readonly durationMs: number;
}

/** The JSON form of a {@link Report}. */
export interface ReportJson {
  readonly name: string;
  readonly profile: Profile;
  readonly ok: boolean;
  readonly counts: Readonly<Record<CheckOutcome, number>>;
  readonly problems: readonly string[];
  readonly results: readonly CheckResult[];
}

/** What the suite found out about one store. */
export class Report implements ReportJson {
  readonly name: string;
  readonly profile: Profile;
  readonly results: readonly CheckResult[];
  /** What is wrong with the call itself, such as a skip of a check that does not exist. */
  readonly problems: readonly string[];

  constructor(name: string, profile: Profile, results: readonly CheckResult[], problems: readonly string[]) {
    this.name = name;
    this.profile = profile;
    this.results = results;
    this.problems = problems;
  }

  /** True when nothing failed and nothing is wrong with the call. */
  get ok(): boolean {
    return this.counts.failed === 0 && this.problems.length === 0;
  }

  get counts(): Readonly<Record<CheckOutcome, number>> {
    const counts = { passed: 0, failed: 0, skipped: 0, inapplicable: 0 };
    for (const { outcome } of this.results) counts[outcome] += 1;
    return counts;
  }

  toJSON(): ReportJson {
    const { name, profile, ok, counts, problems, results } = this;
    return { name, profile, ok, counts, problems, results };
  }

  /** A table for people, one line for each check, and the counts. */
  toTable(): string {
    const idWidth = Math.max(0, ...this.results.map(({ id }) => id.length));
    const lines = this.results.map(({ id, rule, outcome, message, title }) =>
      [outcome.padEnd(12), rule.padEnd(3), id.padEnd(idWidth), message ?? title].join("  "),
    );
    const { passed, failed, skipped, inapplicable } = this.counts;
    return [
      `${this.name} (${this.profile})`,
      ...lines,
      ...this.problems.map((problem) => `problem: ${problem}`),
      `${passed} passed, ${failed} failed, ${skipped} skipped, ${inapplicable} inapplicable`,
    ].join("\n");
  }
}
