import type { TaskRecord } from "@longjobs/core";

import type { Sight } from "../recovery/witness.ts";

/** A task as `tasks/get` shows it. */
export interface TaskView {
  readonly taskId: string;
  readonly status: string;
  readonly lastUpdatedAt: string;
  readonly inputRequests?: { readonly [key: string]: unknown };
  readonly result?: { readonly content?: readonly { readonly text?: string }[] };
  readonly error?: { readonly data?: unknown };
}

/** When a request was sent and when its answer was there, on the one clock of the clients. */
export interface Span {
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** A call of a tool that was answered with a task. */
export interface Accepted {
  readonly taskId: string;
  readonly tool: string;
}

/** What a reader was shown. */
export interface Read extends Span {
  readonly view: TaskView;
}

/** An answer that a client sent. Whoever got no acknowledgement does not know whether it arrived. */
export interface GivenAnswer {
  readonly taskId: string;
  readonly key: string;
  readonly value: string;
  readonly sentMs: number;
  readonly acknowledgedMs?: number;
}

/** A state of a record, as the backend has kept it. */
export interface Version extends Pick<
  TaskRecord,
  "taskId" | "version" | "status" | "lease" | "attempt" | "checkpoint" | "progress" | "inputs" | "finishedBy"
> {
  /** How long the lease that this write has replaced would have lasted yet, on the clock of the backend. */
  readonly leaseLeftMs?: number;
}

/** Everything that is known of a run when it is over, from three sides that do not know of each other. */
export interface RunHistory {
  readonly accepted: readonly Accepted[];
  readonly reads: readonly Read[];
  readonly answers: readonly GivenAnswer[];
  /** The tasks that somebody has asked to cancel. */
  readonly cancelled: ReadonlySet<string>;
  /** What servers refused and should not have. */
  readonly refusals: readonly string[];
  /** What handlers say that they did. */
  readonly sights: readonly Sight[];
  /** What the backend says that was written, of each task in order. */
  readonly versions: readonly Version[];
}

/** By task, in the order in which they come. */
export function byTask<Of extends { readonly taskId?: string }>(
  entries: readonly Of[],
): ReadonlyMap<string, Of[]> {
  const grouped = new Map<string, Of[]>();
  for (const entry of entries) {
    if (entry.taskId === undefined) continue;
    const group = grouped.get(entry.taskId);
    if (group === undefined) grouped.set(entry.taskId, [entry]);
    else group.push(entry);
  }
  return grouped;
}
