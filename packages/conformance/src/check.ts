import type { CheckContext } from "./check-context.ts";

/**
 * What a store claims. `volatile`: right while the process lives. `durable`: also after `close` and a crash.
 * `shared`: also for several handles on the same backing data. Each includes the one before.
 */
export type Profile = "volatile" | "durable" | "shared";

/**
 * What a check needs beyond the five methods: a clock that moves, the same data opened again, a second handle,
 * a crash, a backend that fails, or one of the optional capabilities `watch` and `claim` (with `renew`).
 */
export type Need = "time" | "reopen" | "second" | "crash" | "fault" | "watch" | "claim";

/** One rule of the contract that runs. It throws to fail, and uses no test runner. */
export interface Check {
  /** Stable: skips and reports name a check by it. `method.rule`. */
  readonly id: string;
  /** The rule of `docs/reference/contract.md` that the check shows, such as `"C9"`. */
  readonly rule: string;
  /** A sentence of the contract. */
  readonly title: string;
  /** The lowest profile that must pass it. */
  readonly profile: Profile;
  readonly needs: readonly Need[];
  run(ctx: CheckContext): Promise<void>;
}

/** A {@link Check} of the profile `volatile` without needs, unless it says otherwise. */
export function defineCheck(check: Omit<Check, "profile" | "needs"> & Partial<Check>): Check {
  return { profile: "volatile", needs: [], ...check };
}

const profiles: readonly Profile[] = ["volatile", "durable", "shared"];

/** True when a store of the profile `claimed` must pass a check of the profile `required`. */
export function profileIncludes(claimed: Profile, required: Profile): boolean {
  return profiles.indexOf(claimed) >= profiles.indexOf(required);
}

/** Throws for a profile that does not exist: a typing error must not turn checks off. */
export function assertProfile(profile: string): void {
  if (!profiles.some((known) => known === profile)) {
    throw new TypeError(`There is no profile ${JSON.stringify(profile)}; use ${profiles.join(", ")}.`);
  }
}
