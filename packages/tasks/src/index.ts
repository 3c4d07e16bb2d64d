// Everything listed here is public API.
export { createTasks } from "./create-tasks.ts";
export type { AttachableServer, Tasks, TasksOptions } from "./create-tasks.ts";
export type { Ask } from "./ask.ts";
export type { FallbackOptions } from "./fallback-options.ts";
export type { PushOptions } from "./push/push-options.ts";
export type { ScopeOption } from "./scope.ts";
export type { SdkTaskMessageQueue } from "./sdk-messages.ts";
export { asSdkTaskStore } from "./sdk-task-store.ts";
export type { SdkTaskMachinery, SdkTaskStore, SdkTaskStoreOptions } from "./sdk-task-store.ts";
export type { SchemaOutput, StandardSchema, ToolSchema } from "./standard-schema.ts";
export type {
  Prepared,
  PrepareRequest,
  TaskToolConfig,
  ToolHandler,
  ToolResult,
  ToolTask,
} from "./tool-config.ts";
export type { Executor } from "./tool-runner.ts";
export type { WrappableHandler } from "./push/wrap-handler.ts";
export type { WrappableTransport } from "./push/wrap-transport.ts";
export { withTasks } from "./with-tasks.ts";
