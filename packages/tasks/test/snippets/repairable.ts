import { LongJobsError } from "@longjobs/core";
import type { Tasks } from "@longjobs/tasks";
import { z } from "zod";

export function registerPageTools(tasks: Tasks, pages: readonly string[]): void {
  // #region repairable
  tasks.taskTool("read_page", { inputSchema: z.object({ page: z.int() }) }, ({ page }) => {
    const found = pages[page - 1];
    if (found === undefined) {
      throw new LongJobsError("no_such_page", `There is no page ${page}.`, {
        param: "page",
        recoveryHint: `Ask for a page from 1 to ${pages.length}.`,
        partial: { pages: pages.length },
      });
    }
    return { content: [{ type: "text", text: found }] };
  });
  // #endregion
}
