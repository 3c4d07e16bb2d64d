import { setTimeout as delay } from "node:timers/promises";
import type { Tasks, ToolTask } from "@longjobs/tasks";
import { z } from "zod";

/** The step that is done, and who approved: all that the next attempt needs. */
type Cursor = { readonly receipts: number; readonly approvedBy?: string };

/** Registers the tool of this server: the same on every instance, because any of them may go on with its work. */
export function registerTools(tasks: Tasks): void {
  tasks.taskTool(
    "settle_expense",
    {
      description: "Checks the receipts of an expense, asks who approves it, and books them.",
      inputSchema: z.object({
        expense: z.number().int(),
        receipts: z.number().int().positive(),
        stepMs: z.number().int().nonnegative(),
      }),
      onInterrupted: "resume",
      // Here instances are killed every two seconds. Three crashes, the default, are a lot anywhere else.
      maxAttempts: 1_000,
    },
    async ({ expense, receipts, stepMs }, task) => {
      let cursor = (task.checkpoint ?? { receipts: 0 }) as Cursor;
      for (let done = cursor.receipts + 1; done <= receipts; done += 1) {
        await delay(stepMs, undefined, { signal: task.signal });
        cursor = await save(task, { ...cursor, receipts: done });
        await task.progress({ message: `Receipt ${done}`, done, total: receipts });
      }
      // Who approved is in the record, however often this is run again: nobody is asked twice.
      const approvedBy = await task.ask({ prompt: `Who approves expense ${expense}?` });
      await delay(stepMs, undefined, { signal: task.signal });
      return {
        content: [
          { type: "text", text: `Expense ${expense}: ${receipts} receipts, approved by ${approvedBy}.` },
        ],
        structuredContent: { expense, approvedBy, attempt: task.attempt, instance: process.pid },
      };
    },
  );
}

async function save(task: ToolTask, cursor: Cursor): Promise<Cursor> {
  await task.saveCheckpoint(cursor);
  return cursor;
}
