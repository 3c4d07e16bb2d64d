// Everything listed here is public API.
export { canonicalJson, fingerprintJson, jsonEquals } from "./canonical-json.ts";
export { assertClaim, assertLeaseMs, holdsLease, isClaimable, newLease } from "./claim-task.ts";
export type {
  CreatedOnce,
  CreateOnceOptions,
  DispatchedOnce,
  FoundTask,
  Idempotency,
  IdempotentCall,
} from "./create-once.ts";
export { assertIdempotencyKey } from "./idempotency-key.ts";
export { repeatRequest } from "./inbox.ts";
export { assertInputSupported } from "./input-support.ts";
export type { JsonObject, JsonValue } from "./json.ts";
export { LeaseDeadlines } from "./lease-deadlines.ts";
export { isLongJobsError, LongJobsError, longJobsErrorCodes } from "./longjobs-error.ts";
export type { LongJobsErrorCode, LongJobsErrorOptions, RepairableError } from "./longjobs-error.ts";
export type { CreateTaskOptions } from "./draft-task.ts";
export type { TaskLifecycleOptions } from "./lifecycle-options.ts";
export { MemoryTaskStore } from "./memory-task-store.ts";
export type { MemoryTaskStoreOptions } from "./memory-task-store.ts";
export { defaultJsonLimits, freezeParsedJson, normalizeJson, normalizeJsonObject } from "./normalize-json.ts";
export type { JsonLimits } from "./normalize-json.ts";
export { reportBackgroundError } from "./report-error.ts";
export type { ErrorListener } from "./report-error.ts";
export { isOwnerGone, liveOwners } from "./live-owners.ts";
export { isProtocolError, rejectedOutcome, toToolError } from "./outcome.ts";
export type { Outcome } from "./outcome.ts";
export { readRequestContext } from "./request-context.ts";
export type { AuthInfo, RequestContext } from "./request-context.ts";
export type { ResultSpill, ResultToSpill, SpilledResult } from "./result-spill.ts";
export type { TaskHandler } from "./run-handler.ts";
export { scopeResolver } from "./scope.ts";
export type { ScopeOption, ScopeRefusals, ScopeResolver } from "./scope.ts";
export type { RunLimits } from "./run-limits.ts";
export { setOwn } from "./set-own.ts";
export { storeErrors } from "./store-errors.ts";
export { isExpired } from "./task-expiry.ts";
export type { TaskAttempt, TaskHandle } from "./task-handle.ts";
export { isTaskId } from "./task-id.ts";
export type { TaskFeed } from "./task-feed.ts";
export { TaskLifecycle } from "./task-lifecycle.ts";
export type { CloseOptions, LifecycleStats } from "./task-lifecycle.ts";
export type {
  CancelTaskOptions,
  FollowTasksOptions,
  ScopedCall,
  UpdateTaskOptions,
  WaitForChangeOptions,
} from "./client-calls.ts";
export { applyTaskPatch } from "./task-patch.ts";
export { isTerminal, TASKS_EXTENSION_ID } from "./task-record.ts";
export type {
  InboxEntry,
  InputRequest,
  InputResponse,
  Lease,
  TaskCheckpoint,
  TaskClient,
  TaskError,
  TaskProgress,
  TaskRecord,
  TaskStatus,
  TaskWork,
} from "./task-record.ts";
export { dispatchOwner } from "./task-runner.ts";
export type { Dispatch, RecoveryRules, TaskRunner } from "./task-runner.ts";
export { canLease, canWatch, isExclusive } from "./task-store.ts";
export type {
  ClaimOptions,
  ExclusiveTaskStore,
  HeldLease,
  LeasingTaskStore,
  TaskPatch,
  TaskStore,
  WatchableTaskStore,
} from "./task-store.ts";
export { TaskWriter } from "./task-writer.ts";
export type { TaskWriterOptions, WritePlan } from "./task-writer.ts";
export { TaskWatchers } from "./task-watchers.ts";
export type { Schedule } from "./timers.ts";
export { toDetailedTask, toTask2025, toTaskView } from "./task-view.ts";
export type { DetailedTask, Task2025, TaskView } from "./task-view.ts";
