import type { TaskStore } from "@longjobs/core";

import { CheckContext } from "./check-context.ts";
import type { Check, Need, Profile } from "./check.ts";
import { describeError } from "./expect.ts";
import type { StoreFactory, StoreUnderTest } from "./store-under-test.ts";
import { withDeadline } from "./wait.ts";

/** What became of one check. `inapplicable`: it needs an optional ability that is not there. */
export type CheckOutcome = "passed" | "failed" | "skipped" | "inapplicable";

/** The outcome of one check, and why when it did not pass. */
export interface CheckVerdict {
  readonly outcome: CheckOutcome;
  readonly message?: string;
  readonly cause?: unknown;
}

/** Runs checks one after the other, each on a store of its own. */
export class CheckRun {
  readonly #factory: StoreFactory;
  readonly #profile: Profile;
  readonly #skips: ReadonlyMap<string, string>;
  readonly #deadlineMs: number;
  readonly #used = new WeakSet<TaskStore>();

  constructor(
    factory: StoreFactory,
    profile: Profile,
    skips: ReadonlyMap<string, string>,
    deadlineMs: number,
  ) {
    this.#factory = factory;
    this.#profile = profile;
    this.#skips = skips;
    this.#deadlineMs = deadlineMs;
  }

  /** Runs the check; a skipped one runs too, and fails when it would pass. */
  async run(check: Check): Promise<CheckVerdict> {
    const verdict = await this.#attempt(check);
    const reason = this.#skips.get(check.id);
    if (reason === undefined || verdict.outcome === "inapplicable") return verdict;
    if (verdict.outcome === "failed") return { outcome: "skipped", message: reason };
    return { outcome: "failed", message: `${check.id} passes; take it off the list of skips.` };
  }

  async #attempt(check: Check): Promise<CheckVerdict> {
    try {
      return await withDeadline(this.#onFreshStore(check), this.#deadlineMs, `The check ${check.id}`);
    } catch (error) {
      return { outcome: "failed", message: describeError(error), cause: error };
    }
  }

  async #onFreshStore(check: Check): Promise<CheckVerdict> {
    const ctx = new CheckContext(await this.#freshStore());
    try {
      const missing = check.needs.find((need) => !ctx.has(need));
      if (missing !== undefined) return this.#withoutAbility(missing);
      await check.run(ctx);
    } catch (error) {
      // The first failure is the one to report: a store that failed a check may also fail to close.
      await ctx.dispose().catch(() => undefined);
      throw error;
    }
    await ctx.dispose();
    return { outcome: "passed" };
  }

  async #freshStore(): Promise<StoreUnderTest> {
    const subject = await this.#factory();
    if (this.#used.has(subject.store)) {
      throw new Error(
        "The factory returned the same store twice; make a fresh one, on fresh data, at each call.",
      );
    }
    this.#used.add(subject.store);
    return subject;
  }

  #withoutAbility(need: Need): CheckVerdict {
    const message = missingAbility[need];
    const optional = need === "watch" || need === "crash";
    return optional
      ? { outcome: "inapplicable", message }
      : {
          outcome: "failed",
          message: `The profile ${this.#profile} is a claim without evidence: ${message}`,
        };
  }
}

/** What the profile promises cannot be inapplicable: only `watch` and `crash` are optional. */
const missingAbility: Readonly<Record<Need, string>> = {
  time: "the factory has neither advanceTime() nor realTime: true.",
  reopen: "the factory has no reopen().",
  second: "the factory has no second().",
  watch: "the store has no watch().",
  crash: "the factory has no crash().",
};
