import { setTimeout as delay } from "node:timers/promises";
import type { Tasks } from "@longjobs/tasks";
import { z } from "zod";

/** One step of work as it was done; printed by whoever did it. */
export interface Step {
  readonly pid: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly page: number;
}

/** The tools of this server: registered where calls are accepted and where they are run. */
export function registerTools(tasks: Tasks, onStep: (step: Step) => void = () => undefined): void {
  tasks.taskTool(
    "index_site",
    {
      description: "Reads the pages of a site and indexes their words.",
      inputSchema: z.object({ pages: z.number().int().positive() }),
      inlineBudgetMs: 0,
      onInterrupted: "resume",
    },
    async ({ pages }, task) => {
      const done = (task.checkpoint as number | undefined) ?? 0;
      for (let page = done + 1; page <= pages; page += 1) {
        await delay(100, undefined, { signal: task.signal });
        onStep({ pid: process.pid, taskId: task.taskId, attempt: task.attempt, page });
        await task.saveCheckpoint(page);
        await task.progress({ message: `Page ${page}`, done: page, total: pages });
      }
      return { content: [{ type: "text", text: `Indexed ${pages} pages.` }] };
    },
  );
}
