import type { ReferenceStoreClass } from "./reference-task-store.ts";

/** A deliberately wrong store, and the checks that must notice: these and no others. */
export interface Mutant {
  /** What is wrong with it. */
  readonly fault: string;
  readonly caughtBy: readonly string[];
  readonly Store: ReferenceStoreClass;
}
