import type { TaskProgress } from "./task-record.ts";

/** Checks and copies what a handler says about its progress. @throws TypeError */
export function toProgress(progress: string | TaskProgress): TaskProgress {
  if (typeof progress === "string") return { message: progress };
  if (typeof progress !== "object" || progress === null) {
    throw new TypeError("progress must be a message or { message?, done?, total? }.");
  }
  const { message, done, total } = progress;
  if (message !== undefined && typeof message !== "string")
    throw new TypeError("progress.message must be a string.");
  assertCount("done", done);
  assertCount("total", total);
  return {
    ...(message === undefined ? {} : { message }),
    ...(done === undefined ? {} : { done }),
    ...(total === undefined ? {} : { total }),
  };
}

/** What people read: the message, the share that is done, or both. */
export function statusMessageOf({ message, done, total }: TaskProgress): string | undefined {
  if (done === undefined) return message;
  const share =
    total === undefined || total === 0 ? `${done}` : `${done} of ${total} (${percent(done, total)} %)`;
  return message === undefined ? share : `${message}: ${share}`;
}

/** Rounded down, so that 100 is not said too early. */
function percent(done: number, total: number): number {
  return Math.min(100, Math.floor((done / total) * 100));
}

function assertCount(name: string, count: number | undefined): void {
  if (count !== undefined && !(Number.isFinite(count) && count >= 0)) {
    throw new TypeError(`progress.${name} must be a finite number from 0.`);
  }
}
