import { MemoryTaskStore, type TaskHandle } from "../../src/index.ts";
import { startEngine } from "./engine.ts";

/** A task whose engine is gone, on the store that it left behind. */
export interface Orphan {
  readonly store: MemoryTaskStore;
  readonly taskId: string;
}

/** Creates a task, lets `prepare` work on it, and closes its engine in the middle of the work. */
export async function orphanTask(
  prepare: (task: TaskHandle, store: MemoryTaskStore) => Promise<void> | void = () => undefined,
  clock: { readonly now?: () => number } = {},
): Promise<Orphan> {
  const store = new MemoryTaskStore(clock);
  const { lifecycle } = startEngine({ store, ...clock });
  const { taskId } = await lifecycle.createTask({ work: { tool: "resize", arguments: { file: "a" } } });
  await prepare(lifecycle.handle(taskId), store);
  await lifecycle.close({ shutdownGraceMs: 0 });
  return { store, taskId };
}

/** The intent to cancel, as an owner that died before it stopped would have left it. */
export async function leaveCancelIntent({ store, taskId }: Orphan): Promise<string> {
  const cancelRequestedAt = "2026-07-28T00:00:00.000Z";
  const record = await store.get(taskId);
  await store.update(taskId, { cancelRequestedAt }, record?.version ?? 0);
  return cancelRequestedAt;
}
