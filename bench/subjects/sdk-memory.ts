import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import type { Subject } from "../subject.ts";

/** The store in memory of the MCP SDK v1: no compare-and-swap, and a timer for each task. */
export const sdkMemory: Subject = {
  name: "SDK v1 in memory",
  open: async () => {
    const store = new InMemoryTaskStore();
    const ids = new Map<string, string>();
    const idOf = (taskId: string): string => ids.get(taskId) ?? taskId;
    return {
      create: async ({ taskId, ttlMs }) => {
        const task = await store.createTask({ ttl: ttlMs }, 1, {
          method: "tools/call",
          params: { name: "build_report" },
        });
        ids.set(taskId, task.taskId);
      },
      get: (taskId) => store.getTask(idOf(taskId)),
      update: async (taskId, patch, expectedVersion) => {
        if (patch.result === undefined)
          await store.updateTaskStatus(idOf(taskId), "working", patch.statusMessage);
        else await store.storeTaskResult(idOf(taskId), "completed", { ...patch.result });
        return expectedVersion + 1;
      },
      close: async () => store.cleanup(),
    };
  },
};
