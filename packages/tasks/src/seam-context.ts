import type { JsonObject } from "@longjobs/core";
import type { FallbackTool } from "./fallback-tools.ts";
import type { Served } from "./serve-tool-call.ts";
import type { TaskMethods } from "./task-methods.ts";
import type { TaskMethods2025 } from "./tasks-2025/task-methods-2025.ts";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";
import type { JsonSchemaValidator } from "./validate-input.ts";

/** What a seam to an SDK needs of longjobs. */
export interface SeamContext {
  readonly methods: TaskMethods;
  /** The task methods for clients of revision 2025-11-25. */
  readonly methods2025: TaskMethods2025;
  readonly serve: (tool: TaskTool, args: unknown, call: ToolCall) => Promise<Served>;
  /** The error as the client is told it; a fault of the server is reported on the way. */
  readonly tellError: (error: unknown) => Error;
  readonly useValidator: (validator: JsonSchemaValidator) => void;
  /** The tools for clients that do not have tasks. */
  readonly fallbackTools: readonly FallbackTool[];
  /** What such a client gets instead of a task handle. */
  readonly describeStarted: (served: Extract<Served, { kind: "task" }>) => JsonObject;
  /** What a host may give its model while it waits for a task of 2025-11-25 itself. */
  readonly describeAccepted: (
    tool: TaskTool,
    served: Extract<Served, { kind: "task" }>,
  ) => string | undefined;
}
