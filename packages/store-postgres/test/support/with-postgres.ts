import { describe, inject, it } from "vitest";

/** The server of the tests. Use it only inside of {@link withPostgres}. */
export const postgresUrl: string = inject("postgresUrl") ?? "";

/** A group of tests that need a server: skipped without one, or failed where one must be there. */
export function withPostgres(name: string, tests: () => void): void {
  if (postgresUrl !== "") describe(name, tests);
  else if (process.env["LONGJOBS_REQUIRE_SERVICES"] === "1") {
    it(`${name}: a Postgres server is there`, () => {
      throw new Error("LONGJOBS_REQUIRE_SERVICES is 1, and there is no Postgres server.");
    });
  } else describe.skip(`${name} (no Postgres server)`, tests);
}
