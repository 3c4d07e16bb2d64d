import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { canonicalJson, fingerprintJson, jsonEquals, normalizeJson, type JsonValue } from "../src/index.ts";

/** The same value with its keys put in the other way round, at every level. */
function reversed(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  );
}

describe("equal values give equal text, whatever order their keys came in", () => {
  test("for any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: "medium" }), (given) => {
        const value = normalizeJson(given, "value");
        expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
        expect(normalizeJson(JSON.parse(canonicalJson(value)), "value")).toStrictEqual(value);
        expect(jsonEquals(reversed(value), value)).toBe(true);
      }),
    );
  });

  test("for an own __proto__, integer-like keys, NUL and lone surrogates", () => {
    const text = '{"__proto__":{"b":1,"a":2},"10":1,"9":2,"\\u0000":3,"\\ud800":4}';
    const value = JSON.parse(text) as JsonValue;
    expect(JSON.parse(canonicalJson(value))).toStrictEqual(value);
    expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
  });

  test("arrays keep their order", () => {
    expect(canonicalJson([2, 1])).toBe("[2,1]");
    expect(jsonEquals([1, 2], [2, 1])).toBe(false);
  });
});

test("jsonEquals tells different values apart, and undefined from null", () => {
  expect(jsonEquals({ a: 1 }, { a: 2 })).toBe(false);
  expect(jsonEquals({ a: 1 }, { a: "1" })).toBe(false);
  expect(jsonEquals({}, [])).toBe(false);
  expect(jsonEquals(undefined, undefined)).toBe(true);
  expect(jsonEquals(undefined, null)).toBe(false);
  expect(jsonEquals(null, undefined)).toBe(false);
});

test("the fingerprint is SHA-256 of the canonical text, in hex", async () => {
  expect(await fingerprintJson({ b: 1, a: [true, null] })).toBe(
    await fingerprintJson({ a: [true, null], b: 1 }),
  );
  // echo -n '{}' | sha256sum
  expect(await fingerprintJson({})).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
});

test("different lone surrogates have different fingerprints: encoding must not fold them together", async () => {
  expect(await fingerprintJson("\uD800")).not.toBe(await fingerprintJson("\uD801"));
  expect(await fingerprintJson("\uD800")).not.toBe(await fingerprintJson("\uFFFD"));
});
