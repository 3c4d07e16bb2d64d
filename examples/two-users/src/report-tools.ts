import type { Tasks } from "@longjobs/tasks";

/** One tool, for the servers of both SDKs. */
export function registerReportTools(tasks: Tasks): void {
  tasks.taskTool("write_report", { description: "Writes a report." }, async (_args, task) => {
    const audience = await task.ask({ prompt: "For whom?", choices: ["everyone", "the team"] });
    return { content: [{ type: "text", text: `A report for ${audience}.` }] };
  });
}
