import { setTimeout as delay } from "node:timers/promises";
import type { PatientClient, Task } from "./patient-client.ts";

/** One expense, and who is going to approve it. */
export interface Expense {
  readonly number: number;
  readonly approver: string;
}

export const receipts = 4;
const stepMs = 250;
const pollMs = 200;

/** What a user does with one expense: starts it, waits, answers the question, waits for the end. */
export async function settleExpense(client: PatientClient, { number, approver }: Expense): Promise<Task> {
  const call = { expense: number, receipts, stepMs };
  const { taskId } = await client.callTool("settle_expense", call, `expense-${number}`);
  for (;;) {
    const task = await client.getTask(taskId);
    if (task.status !== "working" && task.status !== "input_required") return task;
    for (const key of Object.keys(task.inputRequests ?? {})) await client.answer(taskId, key, approver);
    await delay(pollMs);
  }
}
