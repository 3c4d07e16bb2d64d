import type { JsonObject, JsonValue } from "./json.ts";
import { LongJobsError } from "./longjobs-error.ts";

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

/** Roots that came out of this module: already plain and frozen, so they are never walked or copied again. */
const normalized = new WeakSet<object>();

/**
 * Turns `value` into plain, deeply frozen JSON, once, at the border. The input is never changed or kept.
 *
 * `-0` becomes `0`. `undefined`, functions, symbols, BigInt, non-finite numbers, cycles and objects with a
 * prototype of their own (`Date`, `Map`, class instances) are refused; `__proto__`, integer-like keys, NUL and
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
  const budget = { keys: limits.maxKeys, bytes: limits.maxBytes, maxDepth: limits.maxDepth, limits };
  const copy = copyJson(value, subject, 0, budget);
  if (isContainer(copy)) normalized.add(copy);
  return copy;
}

/** {@link normalizeJson} for a value that must be an object. */
export function normalizeJsonObject(value: unknown, subject: string, limits?: JsonLimits): JsonObject {
  if (!isContainer(value) || Array.isArray(value)) throw invalidJson(subject, "is not a JSON object");
  return normalizeJson(value, subject, limits) as JsonObject;
}

/**
 * Freezes freshly parsed JSON in place, without a copy. Only for values nobody else holds, such as the
 * result of `JSON.parse`.
 */
export function freezeParsedJson<T>(value: T): T {
  if (!isContainer(value)) return value;
  freezeDeep(value);
  normalized.add(value);
  return value;
}

interface Budget {
  keys: number;
  bytes: number;
  readonly maxDepth: number;
  readonly limits: JsonLimits;
}

function copyJson(value: unknown, path: string, depth: number, budget: Budget): JsonValue {
  switch (typeof value) {
    case "string":
      spendBytes(value.length + 2, path, budget);
      return value;
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw invalidJson(path, `is ${value}`);
      return value === 0 ? 0 : value;
    case "object":
      if (value === null) return null;
      if (normalized.has(value)) return value as JsonValue;
      if (depth >= budget.maxDepth) {
        throw invalidJson(path, `is nested deeper than ${budget.maxDepth} levels, or contains itself`);
      }
      return Array.isArray(value)
        ? copyArray(value, path, depth, budget)
        : copyObject(value, path, depth, budget);
    case "undefined":
    case "function":
    case "symbol":
    case "bigint":
    default:
      throw invalidJson(path, `is ${typeof value === "bigint" ? "a BigInt" : `of type ${typeof value}`}`);
  }
}

function copyArray(value: readonly unknown[], path: string, depth: number, budget: Budget): JsonValue {
  spendKeys(value.length, path, budget);
  const copy: JsonValue[] = [];
  for (let index = 0; index < value.length; index += 1) {
    copy.push(copyJson(value[index], `${path}[${index}]`, depth + 1, budget));
  }
  return Object.freeze(copy);
}

function copyObject(value: object, path: string, depth: number, budget: Budget): JsonObject {
  const prototype: unknown = Object.getPrototypeOf(value);
  // A plain object of another realm has a root prototype that is not ours: a root prototype is enough.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw invalidJson(path, "is not a plain object");
  }
  const keys = Object.keys(value);
  spendKeys(keys.length, path, budget);
  const copy: Record<string, JsonValue> = {};
  for (const key of keys) {
    spendBytes(key.length + 3, path, budget);
    const member = copyJson((value as Record<string, unknown>)[key], `${path}.${key}`, depth + 1, budget);
    // Assigning to `__proto__` would set the prototype; defining it makes an own key, as JSON.parse does.
    if (key === "__proto__") {
      Object.defineProperty(copy, key, {
        value: member,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    } else copy[key] = member;
  }
  return Object.freeze(copy);
}

function spendKeys(count: number, path: string, budget: Budget): void {
  budget.keys -= count;
  spendBytes(2 + count, path, budget);
  if (budget.keys < 0) throw invalidJson(path, `has more than ${budget.limits.maxKeys} keys and elements`);
}

function spendBytes(count: number, path: string, budget: Budget): void {
  budget.bytes -= count;
  if (budget.bytes < 0) {
    throw new LongJobsError(
      "record_too_large",
      `${rootOf(path)} is larger than ${budget.limits.maxBytes} bytes.`,
      {
        param: rootOf(path),
      },
    );
  }
}

function freezeDeep(value: object): void {
  for (const member of Object.values(value)) if (isContainer(member)) freezeDeep(member);
  Object.freeze(value);
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function rootOf(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? path;
}

/** The path is cut: a hostile document could make it as long as itself. */
function invalidJson(path: string, fault: string): LongJobsError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new LongJobsError("invalid_json", `${shown} ${fault}; only plain JSON can be stored.`, {
    param: shown,
  });
}
