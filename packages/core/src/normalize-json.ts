import type { JsonObject, JsonValue } from "./json.ts";
import { isLongJobsError, LongJobsError } from "./longjobs-error.ts";
import { setOwn } from "./set-own.ts";

/** Bounds that {@link normalizeJson} enforces. */
export interface JsonLimits {
  /** Levels of nesting. @default 200 */
  readonly maxDepth: number;
  /** Object keys and array elements in all. @default 1_000_000 */
  readonly maxKeys: number;
  /** A lower bound of the encoded size, in bytes; stores check the exact size. @default 8 MiB */
  readonly maxBytes: number;
}

/** Deep enough for any real document, shallow enough that no recursive reader overflows its stack. */
export const defaultJsonLimits: JsonLimits = {
  maxDepth: 200,
  maxKeys: 1_000_000,
  maxBytes: 8 * 1024 * 1024,
};

/** What a value counts against {@link JsonLimits}. */
interface Weight {
  depth: number;
  keys: number;
  bytes: number;
}

/**
 * Large roots that came out of this module: already plain and frozen, so they are never walked or copied again.
 * Where one is used inside of another value its weight counts, so that no limit is passed in small steps.
 */
const normalized = new WeakMap<object, Readonly<Weight>>();

/** Smaller values are copied again in less time than it takes to remember them. */
const rememberKeys = 32;
const rememberBytes = 1_024;

/**
 * Turns `value` into plain, deeply frozen JSON, once, at the border. The input is never changed or kept.
 *
 * `-0` becomes `0`. `undefined`, functions, symbols, BigInt, non-finite numbers, cycles and objects with a
 * prototype of their own (`Date`, `Map`, class instances, subclassed arrays) are refused; `__proto__`, integer-like keys, NUL and
 * lone surrogates survive.
 *
 * @param subject - What the value is, for the error message, such as `"result"`.
 * @throws LongJobsError `invalid_json` with the path in `param`; `record_too_large` beyond `maxBytes`.
 */
export function normalizeJson(
  value: unknown,
  subject: string,
  limits: JsonLimits = defaultJsonLimits,
): JsonValue {
  // Many fields of a record are numbers, which no limit concerns.
  if (typeof value === "number" && Number.isFinite(value)) return value === 0 ? 0 : value;
  const budget: Budget = { limits, depth: 0, keys: 0, bytes: 0 };
  let copy: JsonValue;
  try {
    copy = copyJson(value, undefined, subject, 0, budget);
  } catch (error) {
    if (isLongJobsError(error)) throw error;
    // A getter or a proxy of the caller's threw.
    throw invalidJson(subject, "cannot be read", error);
  }
  if (isContainer(copy) && (budget.keys > rememberKeys || budget.bytes > rememberBytes)) {
    normalized.set(copy, { depth: budget.depth, keys: budget.keys, bytes: budget.bytes });
  }
  return copy;
}

/** {@link normalizeJson} for a value that must be an object. */
export function normalizeJsonObject(value: unknown, subject: string, limits?: JsonLimits): JsonObject {
  const kept = isContainer(value) ? normalizeJson(value, subject, limits) : undefined;
  if (kept === undefined || Array.isArray(kept)) throw invalidJson(subject, "is not a JSON object");
  return kept as JsonObject;
}

/**
 * Freezes freshly parsed JSON in place, without a copy. Only for values nobody else holds, such as the
 * result of `JSON.parse`.
 */
export function freezeParsedJson<T>(value: T): T {
  if (isContainer(value)) freezeDeep(value);
  return value;
}

/** What has been spent, and what there is. `depth` is the deepest level so far. */
interface Budget extends Weight {
  readonly limits: JsonLimits;
}

/** Where a container is, for error messages; text is made of it only when there is something to say. */
interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
}

function copyJson(
  value: unknown,
  parent: Place | undefined,
  key: string | number,
  depth: number,
  budget: Budget,
): JsonValue {
  switch (typeof value) {
    case "string":
      spendBytes(value.length + 2, parent, key, budget);
      return value;
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw invalidJson(pathOf({ parent, key }), `is ${value}`);
      return value === 0 ? 0 : value;
    case "object":
      if (value === null) return null;
      return copyContainer(value, { parent, key }, depth, budget);
    case "undefined":
    case "function":
    case "symbol":
    case "bigint":
    default:
      throw invalidJson(
        pathOf({ parent, key }),
        `is ${typeof value === "bigint" ? "a BigInt" : `of type ${typeof value}`}`,
      );
  }
}

function copyContainer(value: object, place: Place, depth: number, budget: Budget): JsonValue {
  const known = normalized.get(value);
  spendDepth(depth + (known?.depth ?? 1), place, budget);
  if (known === undefined) {
    return Array.isArray(value)
      ? copyArray(value, place, depth, budget)
      : copyObject(value, place, depth, budget);
  }
  spendKeys(known.keys, place, budget);
  spendBytes(known.bytes, place.parent, place.key, budget);
  return value as JsonValue;
}

function copyArray(value: readonly unknown[], place: Place, depth: number, budget: Budget): JsonValue {
  // An array of another realm has an Array.prototype that is not ours; that of a subclass is one step further.
  if (prototypeSteps(value) !== 2) throw invalidJson(pathOf(place), "is not a plain array");
  spendContainer(value.length, place, budget);
  const copy: JsonValue[] = [];
  for (let index = 0; index < value.length; index += 1) {
    copy.push(copyJson(value[index], place, index, depth + 1, budget));
  }
  return Object.freeze(copy);
}

function copyObject(value: object, place: Place, depth: number, budget: Budget): JsonObject {
  // A plain object of another realm has a root prototype that is not ours: a root prototype is enough.
  if (prototypeSteps(value) > 1) throw invalidJson(pathOf(place), "is not a plain object");
  const keys = Object.keys(value);
  spendContainer(keys.length, place, budget);
  const copy: Record<string, JsonValue> = {};
  for (const key of keys) {
    spendBytes(key.length + 3, place, key, budget);
    setOwn(copy, key, copyJson((value as Record<string, unknown>)[key], place, key, depth + 1, budget));
  }
  return Object.freeze(copy);
}

function spendDepth(depth: number, place: Place, budget: Budget): void {
  const { maxDepth } = budget.limits;
  if (depth > maxDepth) {
    throw invalidJson(pathOf(place), `is nested deeper than ${maxDepth} levels, or contains itself`);
  }
  if (depth > budget.depth) budget.depth = depth;
}

/** Brackets and commas, and what stands between them. */
function spendContainer(length: number, place: Place, budget: Budget): void {
  spendBytes(2 + length, place.parent, place.key, budget);
  spendKeys(length, place, budget);
}

function spendKeys(count: number, place: Place, budget: Budget): void {
  budget.keys += count;
  const { maxKeys } = budget.limits;
  if (budget.keys > maxKeys) throw invalidJson(pathOf(place), `has more than ${maxKeys} keys and elements`);
}

function spendBytes(count: number, parent: Place | undefined, key: string | number, budget: Budget): void {
  budget.bytes += count;
  const { maxBytes } = budget.limits;
  if (budget.bytes > maxBytes) {
    const subject = rootOf({ parent, key });
    throw new LongJobsError("record_too_large", `${subject} is larger than ${maxBytes} bytes.`, {
      param: subject,
    });
  }
}

/** Level by level, without recursion: `JSON.parse` nests deeper than a call stack reaches. */
function freezeDeep(root: object): void {
  for (let level = [root]; level.length > 0;) {
    const below: object[] = [];
    for (const container of level) {
      const members: unknown[] = Array.isArray(container) ? container : Object.values(container);
      for (const member of members) if (isContainer(member)) below.push(member);
      Object.freeze(container);
    }
    level = below;
  }
}

/** How many prototypes there are above a value. */
function prototypeSteps(value: object): number {
  let prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype) return 1;
  if (prototype === Array.prototype) return 2;
  let steps = 0;
  for (; prototype !== null; prototype = Object.getPrototypeOf(prototype)) steps += 1;
  return steps;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function rootOf(place: Place): string {
  return String(place.parent === undefined ? place.key : rootOf(place.parent));
}

function pathOf({ parent, key }: Place): string {
  if (parent === undefined) return String(key);
  return typeof key === "number" ? `${pathOf(parent)}[${key}]` : `${pathOf(parent)}.${key}`;
}

/** The path is cut: a hostile document could make it as long as itself. */
function invalidJson(path: string, fault: string, cause?: unknown): LongJobsError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new LongJobsError("invalid_json", `${shown} ${fault}; only plain JSON can be stored.`, {
    param: shown,
    cause,
  });
}
