import { runInNewContext } from "node:vm";

import { describe, expect, test } from "vitest";

import { defaultJsonLimits, freezeParsedJson, normalizeJson, normalizeJsonObject } from "../src/index.ts";
import { codedErrorOf, codeOf } from "./support/errors.ts";

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = { deeper: value };
  return value;
}

class Point {
  readonly x = 1;
}

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;
const throwing = {
  toJSON(this: void): never {
    throw new Error("no JSON for you");
  },
};

describe("what JSON text cannot hold is refused with invalid_json (P11)", () => {
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["an undefined member", { a: undefined }],
    ["an undefined element", [undefined]],
    ["a hole", Array.from({ length: 3 })],
    ["a function", () => undefined],
    ["a symbol", Symbol("s")],
    ["a BigInt", 1n],
    ["a nested BigInt", { a: [{ b: 1n }] }],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["-Infinity", Number.NEGATIVE_INFINITY],
    ["a Date", new Date(0)],
    ["a Map", new Map()],
    ["a Set", new Set()],
    ["a RegExp", /x/],
    ["an Error", new Error("x")],
    ["a URL", new URL("https://example.com")],
    ["a Promise", Promise.resolve()],
    ["a typed array", new Uint8Array(2)],
    ["a Buffer", Buffer.from("x")],
    ["a class instance", new Point()],
    ["an object with a prototype of its own", Object.create({ inherited: 1 })],
    ["a boxed string", Object("text")],
    ["a boxed number", Object(1)],
    ["an array of a subclass", new (class List extends Array {})()],
    ["a cycle", cycle],
    ["an object whose toJSON throws", throwing],
    ["a getter that throws", Object.defineProperty({}, "a", { enumerable: true, get: throwing.toJSON })],
    ["a revoked proxy", revokedProxy()],
  ])("%s", async (_name, value) => {
    expect(await codeOf(() => normalizeJson(value, "result"))).toBe("invalid_json");
    expect(await codeOf(() => normalizeJson({ in: value }, "result"))).toBe("invalid_json");
  });
});

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe("every JSON value survives", () => {
  test.each<[string, unknown]>([
    ["null", null],
    ["false", false],
    ["an empty string", ""],
    ["an empty object", {}],
    ["an empty array", []],
    ["NUL", { "\u0000": "a\u0000b" }],
    ["lone surrogates", { "\uD800": "\uDC00" }],
    ["integer-like keys", { "10": 1, "9": 2, "-1": 3, "01": 4 }],
    ["an own __proto__", JSON.parse('{"__proto__":{"x":1},"constructor":2,"toString":3}')],
    ["tiny and huge numbers", [5e-324, 1.7976931348623157e308, 2 ** 53, -1e21]],
    ["200 levels", nested(200)],
  ])("%s", (_name, value) => {
    const kept = normalizeJson(value, "result");
    expect(kept).toStrictEqual(value);
    expect(JSON.stringify(kept)).toBe(JSON.stringify(value));
  });

  test("-0 becomes 0, at any depth", () => {
    expect(Object.is(normalizeJson(-0, "n"), 0)).toBe(true);
    expect(Object.is((normalizeJson({ a: [-0] }, "n") as { a: number[] }).a[0], 0)).toBe(true);
  });

  test("an own __proto__ stays an own key and sets no prototype", () => {
    const kept = normalizeJson(JSON.parse('{"__proto__":{"polluted":true}}'), "x") as object;
    expect(Object.hasOwn(kept, "__proto__")).toBe(true);
    expect(Object.getPrototypeOf(kept)).toBe(Object.prototype);
    expect((kept as { polluted?: true }).polluted).toBeUndefined();
  });

  test("objects without a prototype and objects of another realm are plain", () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    expect(normalizeJson(bare, "x")).toStrictEqual({ a: 1 });
    expect(normalizeJson(runInNewContext("({ a: [1, {}] })"), "x")).toStrictEqual({ a: [1, {}] });
  });
});

describe("a normalised value is a value", () => {
  test("it is frozen to the bottom, and the input is neither changed nor kept", () => {
    const inner = { list: [1] };
    const input = { inner };
    const kept = normalizeJson(input, "x") as { inner: { list: number[] } };
    inner.list.push(2);
    expect(kept).toStrictEqual({ inner: { list: [1] } });
    for (const part of [kept, kept.inner, kept.inner.list]) expect(Object.isFrozen(part)).toBe(true);
    for (const part of [input, inner, inner.list]) expect(Object.isFrozen(part)).toBe(false);
  });

  test.each([
    ["many keys", { big: Array.from({ length: 100 }, (_, index) => index) }],
    ["a long text", { big: "x".repeat(2_000) }],
  ])("one with %s is taken over without a second copy, alone or inside of another value", (_what, value) => {
    const kept = normalizeJson(value, "x");
    expect(normalizeJson(kept, "x")).toBe(kept);
    expect((normalizeJson({ kept }, "x") as { kept: unknown }).kept).toBe(kept);
  });

  test("a caller's own frozen object is copied all the same: frozen at the top says nothing of what is below", () => {
    const shallow = Object.freeze({ list: [1] });
    const kept = normalizeJson(shallow, "x") as { list: number[] };
    shallow.list.push(2);
    expect(kept.list).toEqual([1]);
  });

  test("freezeParsedJson freezes in place, to any depth that JSON.parse can give", () => {
    const parsed = JSON.parse(`${"[".repeat(20_000)}1${"]".repeat(20_000)}`) as unknown[];
    expect(freezeParsedJson(parsed)).toBe(parsed);
    let level: unknown = parsed;
    while (Array.isArray(level)) {
      expect(Object.isFrozen(level)).toBe(true);
      level = level[0];
    }
    expect(freezeParsedJson(null)).toBeNull();
    expect(freezeParsedJson("text")).toBe("text");
  });
});

describe("limits", () => {
  test("a value that is 20,000 levels deep is refused, not a stack overflow", async () => {
    expect(await codeOf(() => normalizeJson(nested(20_000), "answer"))).toBe("invalid_json");
    const parsed: unknown = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`);
    expect(await codeOf(() => normalizeJson(parsed, "answer"))).toBe("invalid_json");
    expect(await codeOf(() => normalizeJson(nested(defaultJsonLimits.maxDepth + 1), "x"))).toBe(
      "invalid_json",
    );
  });

  test("depth counts through values that were normalised before", async () => {
    const hundred = normalizeJson(nested(150), "x");
    expect(await codeOf(() => normalizeJson({ a: nestedIn(hundred, 100) }, "x"))).toBe("invalid_json");
    let chain: unknown = 1;
    const growing = (): void => {
      for (let step = 0; step <= defaultJsonLimits.maxDepth; step += 1) {
        chain = normalizeJson({ before: chain }, "checkpoint");
      }
    };
    expect(await codeOf(growing)).toBe("invalid_json");
  });

  test("a small graph that would unfold into a huge tree is refused by its size, fresh or normalised", async () => {
    let fresh: unknown = [1];
    for (let level = 0; level < 40; level += 1) fresh = [fresh, fresh];
    expect(await codeOf(() => normalizeJson(fresh, "x"))).toMatch(/^(?:invalid_json|record_too_large)$/);
    let kept: unknown = [1];
    const doubling = (): void => {
      for (let level = 0; level < 40; level += 1) kept = normalizeJson([kept, kept], "x");
    };
    expect(await codeOf(doubling)).toMatch(/^(?:invalid_json|record_too_large)$/);
  });

  test("too many keys are invalid_json, too many bytes record_too_large", async () => {
    const limits = { maxDepth: 5, maxKeys: 3, maxBytes: 40 };
    expect(normalizeJson([1, 2, 3], "x", limits)).toEqual([1, 2, 3]);
    expect(await codeOf(() => normalizeJson([1, 2, 3, 4], "x", limits))).toBe("invalid_json");
    expect(await codeOf(() => normalizeJson({ a: { b: 1, c: 2, d: 3 } }, "x", limits))).toBe("invalid_json");
    expect(await codeOf(() => normalizeJson("x".repeat(41), "x", limits))).toBe("record_too_large");
    expect(await codeOf(() => normalizeJson({ ["k".repeat(41)]: 1 }, "x", limits))).toBe("record_too_large");
    // oxlint-disable-next-line unicorn/no-new-array -- the point: an array that claims to be huge and holds nothing
    expect(await codeOf(() => normalizeJson(new Array(2 ** 32 - 1), "x"))).toBe("record_too_large");
  });

  test("the error names the path, and cuts it where it is absurdly long", async () => {
    const error = await codedErrorOf(() => normalizeJson({ a: [0, { b: 1n }] }, "result"));
    expect(error.param).toBe("result.a[1].b");
    const long = await codedErrorOf(() => normalizeJson({ ["k".repeat(10_000)]: 1n }, "result"));
    expect(long.param?.length).toBeLessThan(300);
    expect(long.message.length).toBeLessThan(500);
  });
});

test("normalizeJsonObject takes objects alone", async () => {
  expect(normalizeJsonObject({ a: 1 }, "result")).toEqual({ a: 1 });
  for (const value of [null, undefined, 1, "a", true, [], [{}]]) {
    expect(await codeOf(() => normalizeJsonObject(value, "result"))).toBe("invalid_json");
  }
});

function nestedIn(core: unknown, depth: number): unknown {
  let value = core;
  for (let level = 0; level < depth; level += 1) value = { deeper: value };
  return value;
}
