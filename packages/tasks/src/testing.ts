// Everything listed here is public API.
export type { SimulatedAnswer, SimulatedClient, SimulatedClientOptions } from "./testing/simulated-client.ts";
export { TaskHarness } from "./testing/task-harness.ts";
export type { TaskHarnessOptions } from "./testing/task-harness.ts";
export { TestClock } from "./testing/test-clock.ts";
