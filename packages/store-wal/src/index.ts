// Everything listed here is public API.
export { nodeFiles } from "./node-file-layer.ts";
export { WalTaskStore } from "./wal-task-store.ts";

export type { FileLayer, OpenFile } from "./file-layer.ts";
export type { WalTaskStoreOptions } from "./options.ts";
export type { LastCompaction, WalStats } from "./wal-stats.ts";
