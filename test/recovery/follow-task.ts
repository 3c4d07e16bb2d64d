import type { JsonObject } from "@longjobs/core";

import type { Answer } from "../../examples/load-balanced/src/send-request.ts";
import type { Fleet } from "./fleet.ts";

/** A task as a client sees it. */
export type Task = { readonly status?: string; readonly [member: string]: unknown };

/** Longer than anything takes on a busy machine. */
export const deadlineMs = 60_000;

/** The id of the task that a call has become, if it has. */
export function taskIdOf(answer: Answer | undefined): string | undefined {
  return answer?.result?.["taskId"] as string | undefined;
}

/** Calls a tool that becomes a task, on a process that lives. */
export async function startTask(
  fleet: Fleet,
  port: number,
  name: string,
  args: JsonObject = {},
): Promise<string> {
  const answer = await fleet.send(port, "tools/call", { name, arguments: args });
  const taskId = taskIdOf(answer);
  if (taskId === undefined) throw new Error(`${name} became no task, but ${JSON.stringify(answer)}.`);
  return taskId;
}

/** Polls as a client does, and goes on when a process does not answer. */
export async function until(
  fleet: Fleet,
  port: number,
  taskId: string,
  isIt: (task: Task) => boolean,
): Promise<Task> {
  const endMs = Date.now() + deadlineMs;
  let last: Answer | undefined;
  while (Date.now() < endMs) {
    last = await fleet.send(port, "tasks/get", { taskId });
    if (last?.error !== undefined) throw new Error(`Task ${taskId}: ${JSON.stringify(last.error)}`);
    if (last?.result !== undefined && isIt(last.result)) return last.result;
    if (!fleet.lives(port)) throw new Error(`The process on ${port} has ended.`);
    await nextPoll();
  }
  throw new Error(`Task ${taskId} did not come to it; it is ${JSON.stringify(last)}`);
}

/** The task when it has ended. */
export function ended(fleet: Fleet, port: number, taskId: string): Promise<Task> {
  return until(fleet, port, taskId, ({ status }) => isEnd(status));
}

/** The task when it asks, and the wire key of its question. */
export async function asking(
  fleet: Fleet,
  port: number,
  taskId: string,
): Promise<{ task: Task; key: string }> {
  const task = await until(fleet, port, taskId, ({ status }) => status === "input_required");
  const [key = ""] = Object.keys(task["inputRequests"] as object);
  return { task, key };
}

/** Answers a question through a process. */
export function giveAnswer(
  fleet: Fleet,
  port: number,
  taskId: string,
  [key, text]: readonly [string, string],
): Promise<Answer | undefined> {
  const inputResponses = { [key]: { action: "accept", content: { answer: text } } };
  return fleet.send(port, "tasks/update", { taskId, inputResponses });
}

/** Resolves when the task has ended, or its process has, or the time is up. */
export async function untilEndedOrDead(
  fleet: Fleet,
  port: number,
  taskId: string,
  timeoutMs: number = deadlineMs,
): Promise<void> {
  const endMs = Date.now() + timeoutMs;
  while (fleet.lives(port) && Date.now() < endMs) {
    const got = await fleet.send(port, "tasks/get", { taskId });
    if (isEnd(got?.result?.["status"] as string | undefined)) return;
    await nextPoll();
  }
}

function isEnd(status: string | undefined): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The polling interval that the server suggests. */
async function nextPoll(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
}
