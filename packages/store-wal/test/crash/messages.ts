import type { TaskRecord } from "@longjobs/core";
import type { WalTaskStoreOptions } from "../../src/index.ts";

/** What the parent says. */
export type Ask =
  | { readonly ask: "open"; readonly options: WalTaskStoreOptions }
  | { readonly ask: "create"; readonly taskId: string; readonly fields?: Partial<TaskRecord> }
  | { readonly ask: "load"; readonly prefix: string; readonly writers: number }
  | { readonly ask: "close" };

/** What the child answers. */
export type Tell =
  | { readonly told: "ready" | "opened" | "closed" }
  | { readonly told: "created"; readonly taskId: string }
  | { readonly told: "wrote"; readonly taskId: string; readonly version: number }
  | { readonly told: "failed"; readonly code: string; readonly partial: unknown };
