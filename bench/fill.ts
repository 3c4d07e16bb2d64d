import type { TaskStore } from "@longjobs/core";
import { sampleRecord } from "./sample-record.ts";

/** Puts finished tasks of about `bytes` bytes into a store; resolves to their ids and versions. */
export async function fillWithFinishedTasks(
  store: TaskStore,
  tasks: number,
  bytes: number,
): Promise<Map<string, number>> {
  const versions = new Map<string, number>();
  let left = tasks;
  const worker = async (): Promise<void> => {
    while ((left -= 1) >= 0) {
      const { lease: _lease, ...record } = sampleRecord(crypto.randomUUID());
      const text = "x".repeat(Math.max(0, bytes - 600));
      await store.create({ ...record, status: "completed", result: { content: [{ type: "text", text }] } });
      versions.set(record.taskId, record.version);
    }
  };
  await Promise.all(Array.from({ length: 256 }, worker));
  return versions;
}
