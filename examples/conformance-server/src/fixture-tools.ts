import { setTimeout as delay } from "node:timers/promises";
import type { Tasks } from "@longjobs/tasks";
import { z } from "zod";

/** The tools that the official conformance scenarios call. */
export function registerFixtureTools(tasks: Tasks): void {
  tasks.taskTool(
    "slow_compute",
    {
      description: "Computes for a number of seconds.",
      fallback: "wait",
      inputSchema: z.object({ seconds: z.number().min(0).max(600), label: z.string().optional() }),
    },
    async ({ seconds, label }, task) => {
      await delay(seconds * 1_000, undefined, { signal: task.signal });
      return text(`Computed ${label ?? "the answer"} in ${seconds} s.`);
    },
  );

  tasks.taskTool(
    "failing_job",
    { description: "Fails as a tool after a second.", taskSupport: "required", inlineBudgetMs: 0 },
    async (_args, task) => {
      await delay(1_000, undefined, { signal: task.signal });
      return { ...text("The job failed, as it was meant to."), isError: true };
    },
  );

  tasks.taskTool(
    "protocol_error_job",
    { description: "Fails with a JSON-RPC error.", inlineBudgetMs: 0 },
    async () => {
      throw Object.assign(new Error("The job hit a protocol error, as it was meant to."), { code: -32603 });
    },
  );

  tasks.taskTool(
    "confirm_delete",
    {
      description: "Asks before it deletes a file that does not exist.",
      inputSchema: z.object({ filename: z.string() }),
    },
    async ({ filename }, task) => {
      const { confirm } = await task.requestInput({
        confirm: elicit(`Delete ${filename}?`, { confirm: { type: "boolean" } }, []),
      });
      return text(confirm["action"] === "accept" ? `Deleted ${filename}.` : `Kept ${filename}.`);
    },
  );

  tasks.taskTool("multi_input", { description: "Asks two questions at once." }, async (_args, task) => {
    const properties = { name: { type: "string" }, confirm: { type: "boolean" } };
    const answers = await task.requestInput({
      first: elicit("The first question: your name?", properties, []),
      second: elicit("The second question: your name?", properties, []),
    });
    return text(`First: ${JSON.stringify(answers.first)}. Second: ${JSON.stringify(answers.second)}.`);
  });

  tasks.taskTool(
    "test_tool_with_task",
    {
      description: "Asks for a name before it becomes a task.",
      taskSupport: "required",
      inlineBudgetMs: 0,
      inputSchema: z.object({ name: z.string().optional() }),
      prepare: ({ name }, { inputResponses }) => {
        const answer = inputResponses["user_name"];
        if (name !== undefined) return { arguments: { name } };
        if (answer !== undefined) return { arguments: { name: nameIn(answer) } };
        return {
          inputRequests: { user_name: elicit("What is your name?", { name: { type: "string" } }, ["name"]) },
        };
      },
    },
    ({ name }) => text(`Hello, ${name ?? "whoever you are"}!`),
  );
}

function elicit(message: string, properties: object, required: readonly string[]) {
  const requestedSchema = { type: "object", properties: { ...properties }, required } as const;
  return { method: "elicitation/create", params: { mode: "form", message, requestedSchema } } as const;
}

function nameIn(response: { readonly content?: unknown }): string {
  return String((response.content as { name?: unknown } | undefined)?.name);
}

function text(words: string) {
  return { content: [{ type: "text", text: words }] };
}
