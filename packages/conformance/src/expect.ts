import { isLongJobsError, type LongJobsErrorCode } from "@longjobs/core";

/** Fails the check with `message` unless `condition` holds. */
export function expectThat(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** Fails unless both are the same plain JSON, key order aside; names the first path where they differ. */
export function expectEqual(actual: unknown, expected: unknown, subject: string): void {
  const difference = findDifference(actual, expected, "");
  expectThat(difference === undefined, `${subject} differs${difference}`);
}

/** Fails unless the call returns a promise that rejects with a `LongJobsError` of this code. */
export async function expectRejects(
  call: () => Promise<unknown>,
  code: LongJobsErrorCode,
  subject: string,
): Promise<void> {
  const reason = await reasonOf(call, subject, code);
  expectThat(
    isLongJobsError(reason, code),
    `${subject} must reject with a LongJobsError of code ${code}, but rejected with ${describeError(reason)}.`,
  );
}

/** Fails unless the call returns a promise that rejects with a `TypeError`. */
export function expectRejectsTypeError(call: () => Promise<unknown>, subject: string): Promise<void> {
  return expectRejectsNamed(call, ["TypeError"], subject);
}

/** Fails unless the call returns a promise that rejects with a `TypeError` or a `RangeError`. */
export function expectRejectsUsage(call: () => Promise<unknown>, subject: string): Promise<void> {
  return expectRejectsNamed(call, ["TypeError", "RangeError"], subject);
}

/** Writes to an object that came from a store. A frozen one refuses, which is as good as a copy. */
export function tryToChange(target: object | undefined, field: string, value: unknown): void {
  if (target !== undefined) Reflect.set(target, field, value);
}

/** What an error was, in one line, with its code when it has one. */
export function describeError(error: unknown): string {
  if (isLongJobsError(error)) return `LongJobsError ${error.code}: ${error.message}`;
  return error instanceof Error ? `${error.name}: ${error.message}` : show(error);
}

async function expectRejectsNamed(
  call: () => Promise<unknown>,
  names: readonly string[],
  subject: string,
): Promise<void> {
  const wanted = names.join(" or ");
  const reason = await reasonOf(call, subject, wanted);
  expectThat(
    reason instanceof Error && names.includes(reason.name),
    `${subject} must reject with ${wanted}, but rejected with ${describeError(reason)}.`,
  );
}

async function reasonOf(call: () => Promise<unknown>, subject: string, wanted: string): Promise<unknown> {
  let pending: Promise<unknown>;
  try {
    pending = call();
  } catch (error) {
    throw new Error(`${subject} must return a promise that rejects, but threw ${describeError(error)}.`, {
      cause: error,
    });
  }
  const outcome = await pending.then(
    (value) => ({ value }),
    (reason: unknown) => ({ reason }),
  );
  if ("reason" in outcome) return outcome.reason;
  throw new Error(`${subject} must reject with ${wanted}, but resolved to ${show(outcome.value)}.`);
}

/** Where and how two values differ, as the tail of a sentence; `undefined` when they do not. */
function findDifference(actual: unknown, expected: unknown, path: string): string | undefined {
  if (Object.is(actual, expected)) return undefined;
  if (!isContainer(actual) || !isContainer(expected) || Array.isArray(actual) !== Array.isArray(expected)) {
    return `${at(path)}: expected ${show(expected)}, got ${show(actual)}.`;
  }
  for (const key of Object.keys(expected)) {
    if (!Object.hasOwn(actual, key)) return `${at(`${path}.${key}`)}: it is missing.`;
    const difference = findDifference(member(actual, key), member(expected, key), `${path}.${key}`);
    if (difference !== undefined) return difference;
  }
  const extra = Object.keys(actual).find((key) => !Object.hasOwn(expected, key));
  return extra === undefined ? undefined : `${at(`${path}.${extra}`)}: it should not be there.`;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function member(container: object, key: string): unknown {
  return (container as Record<string, unknown>)[key];
}

/** Paths and values are cut: a check compares megabytes and 200 levels, and nobody reads those. */
function at(path: string): string {
  return path === "" ? "" : ` at ${cut(path.slice(1))}`;
}

function show(value: unknown): string {
  return cut(JSON.stringify(value) ?? typeof value);
}

function cut(text: string): string {
  return text.length > 120 ? `${text.slice(0, 100)}… (${text.length} characters)` : text;
}
