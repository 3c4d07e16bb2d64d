import { jsonEquals } from "./canonical-json.ts";
import type { Outcome } from "./outcome.ts";
import { isTerminal, type TaskRecord } from "./task-record.ts";
import { finalTtlMs } from "./task-retention.ts";
import type { TaskPatch } from "./task-store.ts";

/** An outcome that is written. */
export type FinalOutcome = Exclude<Outcome, { readonly status: "abandoned" }>;

/** What the terminal write needs to know besides the outcome. */
export interface Ending {
  /** The lease token of the attempt that ends the task. */
  readonly token: string;
  readonly nowMs: number;
  /** The diagnosis or summary that people see. @default the error's message for `failed`, else none */
  readonly statusMessage?: string | undefined;
  /** True to keep what people answered: after an interruption nothing a person said is thrown away. */
  readonly keepInputs?: boolean;
}

/**
 * The one terminal write: status and payload together, the working state dropped, and time enough for the
 * result to be read.
 */
export function terminalPatch(record: TaskRecord, outcome: FinalOutcome, ending: Ending): TaskPatch {
  const { arguments: _dropped, ...work } = record.work ?? { tool: "" };
  return {
    status: outcome.status,
    statusMessage: ending.statusMessage ?? (outcome.status === "failed" ? outcome.error.message : undefined),
    ttlMs: finalTtlMs(record, ending.nowMs),
    finishedBy: ending.token,
    lease: undefined,
    ...(record.released === undefined ? {} : { released: undefined }),
    checkpoint: undefined,
    ...(ending.keepInputs === true ? {} : { inputs: undefined }),
    ...(record.work === undefined ? {} : { work }),
    ...(outcome.status === "completed" ? { result: outcome.result } : {}),
    ...(outcome.status === "failed" ? { error: outcome.error } : {}),
  };
}

/** True when the record says that this very attempt ended the task in this very way. */
export function isOwnEnding(record: TaskRecord, outcome: FinalOutcome, token: string): boolean {
  if (!isTerminal(record.status) || record.finishedBy !== token || record.status !== outcome.status)
    return false;
  if (outcome.status === "completed") return jsonEquals(record.result, outcome.result);
  return outcome.status !== "failed" || jsonEquals(record.error, outcome.error);
}
