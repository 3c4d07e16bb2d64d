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
  /** True when the factory is at fault, not the store: no skip excuses that. */
  readonly claimFault?: true;
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
    if (reason === undefined || verdict.outcome === "inapplicable" || verdict.claimFault === true)
      return verdict;
    if (verdict.outcome === "failed") return { outcome: "skipped", message: reason };
    return { outcome: "failed", message: `${check.id} passes; take it off the list of skips.` };
  }

  async #attempt(check: Check): Promise<CheckVerdict> {
    let ctx: CheckContext;
    try {
      ctx = new CheckContext(await this.#within(this.#freshStore(), "The factory"));
    } catch (error) {
      return { ...failed(error), claimFault: true };
    }
    const verdict = await this.#judge(check, ctx);
    try {
      await this.#within(ctx.dispose(), `Closing the store after ${check.id}`);
    } catch (error) {
      // The first failure is the one to report: a store that failed a check may also fail to close.
      if (verdict.outcome === "passed") return failed(error);
    }
    return verdict;
  }

  async #judge(check: Check, ctx: CheckContext): Promise<CheckVerdict> {
    const missing = check.needs.find((need) => !ctx.has(need));
    if (missing !== undefined) return this.#withoutAbility(missing);
    try {
      await this.#within(check.run(ctx), `The check ${check.id}`);
      return { outcome: "passed" };
    } catch (error) {
      return failed(error);
    }
  }

  #within<T>(work: Promise<T>, awaited: string): Promise<T> {
    return withDeadline(work, this.#deadlineMs, awaited);
  }

  async #freshStore(): Promise<StoreUnderTest> {
    const subject = await this.#factory();
    if (this.#used.has(subject.store)) {
      throw new Error(
        "The factory returned the same store twice; make a fresh one, on fresh data, at each call.",
      );
    }
    this.#used.add(subject.store);
    // The id that nearly every check uses. A store that rejects here gets its verdict from the checks.
    const leftover = await subject.store.get("task-1").catch(() => undefined);
    if (leftover !== undefined) {
      throw new Error(
        "The factory's store is not fresh: it holds task-1 of an earlier check. Give each store its own data.",
      );
    }
    return subject;
  }

  #withoutAbility(need: Need): CheckVerdict {
    const message = missingAbility[need];
    if (optionalNeeds.has(need)) return { outcome: "inapplicable", message };
    const claim = `The profile ${this.#profile} is a claim without evidence: ${message}`;
    return { outcome: "failed", message: claim, claimFault: true };
  }
}

function failed(error: unknown): CheckVerdict {
  return { outcome: "failed", message: describeError(error), cause: error };
}

/** What the profile promises cannot be inapplicable: only these can. */
const optionalNeeds: ReadonlySet<Need> = new Set(["watch", "claim", "crash", "fault"]);

const missingAbility: Readonly<Record<Need, string>> = {
  time: "the factory has neither advanceTime() nor realTime: true.",
  reopen: "the factory has no reopen().",
  second: "the factory has no second().",
  watch: "the store has no watch().",
  claim: "the store has no claim() and renew().",
  crash: "the factory has no crash().",
  fault: "the factory has no fault().",
};
