import { isLongJobsError, type LongJobsError } from "../../src/index.ts";

/** The error that a call throws or rejects with; fails when it succeeds. */
export async function errorOf(call: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    await (typeof call === "function" ? call() : call);
  } catch (error) {
    return error;
  }
  throw new Error("The call succeeded; it should have failed.");
}

/** The `LongJobsError` that a call throws or rejects with; fails for any other error. */
export async function codedErrorOf(call: Promise<unknown> | (() => unknown)): Promise<LongJobsError> {
  const error = await errorOf(call);
  if (!isLongJobsError(error)) throw error;
  return error;
}

/** The code of the error that a call throws or rejects with. */
export async function codeOf(call: Promise<unknown> | (() => unknown)): Promise<string> {
  return (await codedErrorOf(call)).code;
}
