import { deadlineError } from "./postgres-errors.ts";

/** The outcome of `work`, or `store_unavailable` when it has not settled in time. */
export function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(deadlineError(deadlineMs)), deadlineMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
