import type { TaskRecord, TaskStore } from "../../src/index.ts";
import { startWorker } from "./worker.ts";

/** The record of a task that is there. */
export async function recordOf(store: TaskStore, taskId: string): Promise<TaskRecord> {
  const record = await store.get(taskId);
  if (record === undefined) throw new Error(`No record of ${taskId}.`);
  return record;
}

/** A task of a tool whose process was killed in the middle of the work. */
export async function killedTask(store: TaskStore, tool = "crawl"): Promise<string> {
  const dead = startWorker({ store });
  const { taskId } = await dead.call(tool);
  dead.die();
  return taskId;
}
