import { expect } from "vitest";

import { sha256 } from "../disk/support/bytes.ts";

/** Compared by digest: to compare megabytes member by member takes seconds. */
export function expectSame(given: Uint8Array, expected: Uint8Array): void {
  expect([given.length, sha256(given)]).toEqual([expected.length, sha256(expected)]);
}
