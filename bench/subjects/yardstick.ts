import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { preciseDelay } from "../slow-flush.ts";
import type { OpenSubject, Subject } from "../subject.ts";

/**
 * The bare yardstick: a Map of JSON strings with group commit, and nothing else. No checks, no time to live, no
 * checksums, no compaction: what any log costs at the least.
 */
export function yardstick(fsync: boolean, addedFlushMs = 0): Subject {
  return {
    name: fsync ? "yardstick" : "yardstick, no flush",
    open: async (dir) => openYardstick(await open(join(dir, "log.jsonl"), "a"), fsync, addedFlushMs),
  };
}

function openYardstick(file: FileHandle, fsync: boolean, addedFlushMs: number): OpenSubject {
  const tasks = new Map<string, string>();
  let queued: { text: string; done: () => void }[] = [];
  let flushing: Promise<void> | undefined;

  const flush = async (): Promise<void> => {
    while (queued.length > 0) {
      const batch = queued;
      queued = [];
      await file.appendFile(batch.map(({ text }) => text).join(""));
      if (fsync) await file.datasync();
      if (addedFlushMs > 0) await preciseDelay(addedFlushMs);
      for (const { done } of batch) done();
    }
    flushing = undefined;
  };
  const append = (text: string): Promise<void> =>
    new Promise((done) => {
      queued.push({ text, done });
      flushing ??= flush();
    });
  const put = async (taskId: string, json: string): Promise<void> => {
    await append(`${json}\n`);
    tasks.set(taskId, json);
  };

  return {
    create: (record) => put(record.taskId, JSON.stringify(record)),
    get: async (taskId) => JSON.parse(tasks.get(taskId) ?? "null") as unknown,
    update: async (taskId, patch, expectedVersion) => {
      const record = JSON.parse(tasks.get(taskId) ?? "null") as object;
      await put(taskId, JSON.stringify({ ...record, ...patch, version: expectedVersion + 1 }));
      return expectedVersion + 1;
    },
    close: async () => {
      await flushing;
      await file.close();
    },
  };
}
