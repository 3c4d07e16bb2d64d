import type { JsonValue } from "./json.ts";

/**
 * JSON text with object keys in one fixed order (integer-like keys by number, then the others by code unit):
 * equal values give equal text, whatever order their keys came in. The basis of fingerprints and of comparing
 * outcomes.
 */
export function canonicalJson(value: JsonValue): string {
  return JSON.stringify(value, sortKeys);
}

/** True when both are the same JSON value, key order aside. */
export function jsonEquals(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === right) return true;
  if (left === undefined || right === undefined) return false;
  return canonicalJson(left) === canonicalJson(right);
}

/** SHA-256 over the canonical text, as 64 lower-case hex digits. */
export async function fingerprintJson(value: JsonValue): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(value));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : Number(left > right))),
  );
}
