/*
 * The tools of the example, for whatever SDK the server is written with. Their tasks are kept in `TASKS_DIR`, so that a report
 * outlives its server.
 */
import { setTimeout as delay } from "node:timers/promises";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks, type Tasks } from "@longjobs/tasks";
import { z } from "zod";

export async function openReportTasks(): Promise<Tasks> {
  const store = await WalTaskStore.open({ dir: process.env["TASKS_DIR"] ?? "./tasks" });
  const sectionMs = Number(process.env["SECTION_MS"] ?? 2_000);
  const tasks = createTasks({ store });
  // #region report
  tasks.taskTool(
    "write_report",
    {
      title: "Write a report",
      description: "Writes a report with an introduction, a section for each subject, and a summary.",
      inputSchema: z.object({ topic: z.string(), subjects: z.array(z.string()).min(1).max(20) }),
    },
    async ({ topic, subjects }, task) => {
      const sections = ["Introduction", ...subjects, "Summary"];
      const written: string[] = [];
      for (const [index, section] of sections.entries()) {
        await task.progress({ message: `Writing ${section}`, done: index, total: sections.length });
        await delay(sectionMs, undefined, { signal: task.signal });
        written.push(`## ${section}`);
        if (index === 0) {
          const tone = await task.ask({
            prompt: `In which tone shall the report on ${topic} be written?`,
            choices: ["formal", "friendly"],
          });
          written.push(`(${tone} from here on)`);
        }
      }
      return { content: [{ type: "text", text: [`# ${topic}`, ...written].join("\n") }] };
    },
  );
  // #endregion
  return tasks;
}
