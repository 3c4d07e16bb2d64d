/** Deeper values are left as they are: the normaliser refuses them, and no call stack is at risk. */
const maxDepth = 500;

/**
 * The same value without object members that are `undefined`, as `JSON.stringify` sees it. Only plain objects
 * and arrays are looked into; what needs no change is not copied. The argument is never changed.
 */
export function dropUndefined(value: unknown): unknown {
  return drop(value, 0, new Map());
}

/** @param copies - What became of each object: shared ones stay shared, and a cycle stays one. */
function drop(value: unknown, depth: number, copies: Map<object, unknown>): unknown {
  if (typeof value !== "object" || value === null || depth > maxDepth) return value;
  if (copies.has(value)) return copies.get(value);
  copies.set(value, value);
  const copy = Array.isArray(value) ? dropInArray(value, depth, copies) : dropInObject(value, depth, copies);
  copies.set(value, copy);
  return copy;
}

function dropInArray(array: readonly unknown[], depth: number, copies: Map<object, unknown>): unknown {
  const elements = array.map((element) => drop(element, depth + 1, copies));
  return elements.every((element, index) => element === array[index]) ? array : elements;
}

function dropInObject(object: object, depth: number, copies: Map<object, unknown>): unknown {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) return object;
  const before = Object.entries(object);
  const after = before
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => [key, drop(member, depth + 1, copies)] as const);
  const same =
    after.length === before.length && after.every(([, member], index) => member === before[index]?.[1]);
  return same ? object : Object.fromEntries(after);
}
