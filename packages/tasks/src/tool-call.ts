import type {
  InputResponse,
  JsonObject,
  JsonValue,
  RequestContext,
  TaskClient,
  TaskProgress,
} from "@longjobs/core";
import type { StandardSchema } from "./standard-schema.ts";

/** What a client of revision 2025-11-25 says when it wants a call to be a task. */
export interface TaskWish {
  /** How long it wants to be able to read the task, in milliseconds. */
  readonly ttl?: number;
  /** What this client can be asked while it waits for the result. */
  readonly askable: JsonObject;
  /** Present when the client gave a progress token, which counts for the life of the task. */
  readonly progressFor?: (taskId: string) => (progress: TaskProgress) => void;
}

/** One call of a task tool, whatever SDK and era it came through. */
export interface ToolCall {
  readonly request: RequestContext;
  /** What this very call declared. */
  readonly client: TaskClient;
  /** True when this very call declares the Tasks extension. */
  readonly declaresTasks: boolean;
  /** True for revision 2026-07-28, which knows the error -32021. */
  readonly modern: boolean;
  /** Present when a client of revision 2025-11-25 wants a task of that revision. */
  readonly taskWish?: TaskWish;
  /** The arguments as they came, before any schema filled in defaults. */
  readonly rawArguments: JsonValue;
  /** The argument that is an idempotency key, as it came; it is not among the others. */
  readonly keyArgument?: unknown;
  /** Aborted when the client goes away or cancels the request. */
  readonly signal: AbortSignal;
  readonly inputResponses?: { readonly [key: string]: InputResponse };
  /** Keys whose answers came in a shape that could not even be read. */
  readonly malformedKeys: readonly string[];
  readonly requestState?: string;
  readonly outputSchema?: StandardSchema;
  /** Present when the client gave a progress token. */
  readonly sendProgress?: (progress: TaskProgress) => void;
}
