import type { ErrorListener } from "@longjobs/core";
import type { LeaseIndexes } from "./lease-indexes.ts";
import type { OperationGate } from "./operation-gate.ts";
import type { ScriptRunner } from "./script-runner.ts";
import type { StoreKeys } from "./store-keys.ts";

/** What every call of one store works with. */
export interface StoreContext {
  readonly runner: ScriptRunner;
  readonly keys: StoreKeys;
  readonly indexes: LeaseIndexes;
  /** Calls of more than one step go through it. */
  readonly gate: OperationGate;
  readonly maxRecordBytes: number;
  readonly onError: ErrorListener | undefined;
}
