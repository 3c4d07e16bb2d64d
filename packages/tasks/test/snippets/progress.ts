import type { Tasks } from "@longjobs/tasks";
import { z } from "zod";

export function registerCopyTools(tasks: Tasks, copy: (file: string) => Promise<void>): void {
  // #region progress
  tasks.taskTool(
    "copy",
    { inputSchema: z.object({ files: z.array(z.string()) }) },
    async ({ files }, task) => {
      for (const [done, file] of files.entries()) {
        void task.progress({ message: `Copying ${file}`, done, total: files.length });
        await copy(file);
        task.signal.throwIfAborted();
      }
      return { content: [{ type: "text", text: `${files.length} files copied.` }] };
    },
  );
  // #endregion
}
