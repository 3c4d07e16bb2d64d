import { setTimeout as delay } from "node:timers/promises";

import type { InputRequest } from "@longjobs/core";
import type { Tasks, ToolTask } from "@longjobs/tasks";
import { z } from "zod";

import type { Sight } from "../recovery/witness.ts";
import type { Mark } from "./check-history.ts";

/** What the tools write down of what they do. */
export type Witness = (sight: Omit<Sight, "pid">) => void;

interface Cursor {
  readonly mark: Mark;
  readonly step: number;
}

/** They all take a while, in steps. */
const inputSchema = z.object({ steps: z.number().int(), stepMs: z.number() });
const resumable = { inputSchema, inlineBudgetMs: 0, onInterrupted: "resume", maxAttempts: 100_000 } as const;

/**
 * Tools for all that a handler can do: what they save carries the mark of its run, so that the backend shows who has written.
 *
 * @param ownerOf - The name under which this process holds leases.
 */
export function registerChaosTools(tasks: Tasks, witness: Witness, ownerOf: () => string): void {
  const see = ({ taskId, attempt }: ToolTask, sight: Omit<Sight, "pid" | "taskId" | "attempt">): void =>
    witness({ taskId, attempt, ...sight });

  const walk = async (task: ToolTask, { steps, stepMs }: z.infer<typeof inputSchema>): Promise<void> => {
    see(task, { did: "began" });
    const mark: Mark = { owner: ownerOf(), attempt: task.attempt };
    const { step: done } = (task.checkpoint ?? { step: 0 }) as { readonly step: number };
    for (let step = done + 1; step <= steps; step += 1) {
      await delay(stepMs, undefined, { signal: task.signal });
      see(task, { did: "stepped", step });
      await task.saveCheckpoint({ mark, step } satisfies Cursor as never);
      see(task, { did: "saved", step });
      void task.progress({ message: JSON.stringify(mark), done: step, total: steps });
    }
  };
  const finish = (task: ToolTask, text: string): { content: { type: "text"; text: string }[] } => {
    see(task, { did: "returned", answer: text });
    return { content: [{ type: "text", text }] };
  };

  // Works, asks, works on.
  tasks.taskTool("settle", resumable, async (args, task) => {
    await walk(task, args);
    const answer = await task.ask({ prompt: "Who approves?" });
    see(task, { did: "got", answer, by: "ask" });
    await delay(args.stepMs, undefined, { signal: task.signal });
    return finish(task, `Approved by ${answer}.`);
  });

  // Asks two people at once; a run that goes on looks first for what was said while nobody waited.
  tasks.taskTool("collect", resumable, async (args, task) => {
    await walk(task, args);
    for (const [key, response] of Object.entries(await task.resumeInput()))
      see(task, { did: "got", key, answer: textOf(response), by: "resumeInput" });
    const both = await task.requestInput({ first: question("The first?"), second: question("The second?") });
    for (const key of ["first", "second"] as const)
      see(task, { did: "got", key, answer: textOf(both[key]), by: "requestInput" });
    return finish(task, `${textOf(both.first)} and ${textOf(both.second)}.`);
  });

  // Must not begin again.
  tasks.taskTool("once", { ...resumable, onInterrupted: "fail" }, async ({ steps, stepMs }, task) => {
    see(task, { did: "began" });
    await delay(steps * stepMs, undefined, { signal: task.signal });
    return finish(task, `Done by ${ownerOf()}.`);
  });
}

function question(message: string): InputRequest {
  const requestedSchema = {
    type: "object",
    properties: { answer: { type: "string" } },
    required: ["answer"],
  };
  return { method: "elicitation/create", params: { mode: "form", message, requestedSchema } };
}

function textOf(response: { readonly [member: string]: unknown }): string {
  return String((response["content"] as { readonly answer?: unknown } | undefined)?.answer);
}
