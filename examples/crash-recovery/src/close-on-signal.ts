import type { Server } from "node:http";
import type { TaskStore } from "@longjobs/core";
import type { Tasks } from "@longjobs/tasks";

/**
 * Shuts a server down in good order when it is told to end: no new requests, handlers may finish or are told to stop, their
 * tasks are given back for the next process, and the store is closed last.
 */
export function closeOnSignal(server: Server, tasks: Tasks, store: TaskStore, drainMs = 0): void {
  const close = async (): Promise<void> => {
    server.close();
    server.closeIdleConnections();
    await tasks.close({ drainMs });
    await store.close();
    server.closeAllConnections();
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void close());
}
