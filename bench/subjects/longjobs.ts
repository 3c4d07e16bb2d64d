import { MemoryTaskStore } from "@longjobs/core";
import { WalTaskStore, type WalTaskStoreOptions } from "@longjobs/store-wal";
import type { Subject } from "../subject.ts";

export const memoryStore: Subject = { name: "longjobs memory", open: async () => new MemoryTaskStore() };

export function walStore(options: Omit<WalTaskStoreOptions, "dir"> = {}): Subject {
  return {
    name: options.fsync === false ? "longjobs log, no flush" : "longjobs log",
    open: (dir) => WalTaskStore.open({ dir, ...options }),
  };
}
