import { describe, inject, it } from "vitest";
import { findBinaries } from "./own-server.ts";

/** The server of the tests. Use it only inside of {@link withPostgres}. */
export const postgresUrl: string = inject("postgresUrl") ?? "";

/** A group of tests that need a server: skipped without one, or failed where one must be there. */
export function withPostgres(name: string, tests: () => void): void {
  needing(postgresUrl !== "", "a Postgres server", name, tests);
}

/** A group of tests that start a server of their own, to kill it. */
export function withOwnServer(name: string, tests: () => void): void {
  needing(findBinaries() !== undefined, "a postgres to start", name, tests);
}

function needing(isThere: boolean, what: string, name: string, tests: () => void): void {
  if (isThere) describe(name, tests);
  else if (process.env["LONGJOBS_REQUIRE_SERVICES"] === "1") {
    it(`${name}: there is ${what}`, () => {
      throw new Error(`LONGJOBS_REQUIRE_SERVICES is 1, and there is not ${what}.`);
    });
  } else describe.skip(`${name} (skipped: there is not ${what})`, tests);
}
