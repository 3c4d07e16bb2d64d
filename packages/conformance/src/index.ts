// Everything listed here is public API.
export type { Check, Need, Profile } from "./check.ts";
export type { CheckContext } from "./check-context.ts";
export { checkTaskStore } from "./check-task-store.ts";
export { conformanceChecks } from "./conformance-checks.ts";
export { faultyTaskStore } from "./faulty-task-store.ts";
export type { FaultPlan, StoreCall } from "./faulty-task-store.ts";
export { findHistoryFaults, TaskHistory } from "./history.ts";
export type { HistoryEvent, RecordedRead, RecordedWrite, WriteOutcome } from "./history.ts";
export type { CheckResult, Report, ReportJson } from "./report.ts";
export type { CheckOutcome } from "./run-check.ts";
export { runTaskStoreConformance } from "./run-task-store-conformance.ts";
export type { RunnerOptions, TestRunner } from "./run-task-store-conformance.ts";
export type { Repair, StoreFactory, StoreUnderTest } from "./store-under-test.ts";
export type { Skip, SuiteOptions } from "./suite-options.ts";
