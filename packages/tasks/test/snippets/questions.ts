import { isLongJobsError } from "@longjobs/core";
import type { Tasks } from "@longjobs/tasks";
import { z } from "zod";

export function registerTravelTools(tasks: Tasks): void {
  // #region ask
  tasks.taskTool("book_trip", { inputSchema: z.object({ city: z.string() }) }, async ({ city }, task) => {
    const seat = await task.ask({ prompt: `Which seat to ${city}?`, choices: ["aisle", "window"] });
    const name = await task.ask({ prompt: "Who travels?" });
    return { content: [{ type: "text", text: `${name} goes to ${city}, ${seat}.` }] };
  });
  // #endregion

  // #region together
  tasks.taskTool("plan_trip", {}, async (_args, task) => {
    const [city, month] = await Promise.all([
      task.ask({ prompt: "Which city?" }),
      task.ask({ prompt: "Which month?" }),
    ]);
    return { content: [{ type: "text", text: `${city} in ${month}` }] };
  });
  // #endregion

  // #region declined
  tasks.taskTool("remove_trip", {}, async (_args, task) => {
    const sure = await task.ask({ prompt: "Remove it?", choices: ["yes", "no"] }).catch((error: unknown) => {
      if (isLongJobsError(error, "input_declined")) return "no";
      throw error;
    });
    return { content: [{ type: "text", text: sure === "yes" ? "Removed." : "It stays." }] };
  });
  // #endregion

  // #region form
  tasks.taskTool("rate_trip", {}, async (_args, task) => {
    const { rating } = await task.requestInput({
      rating: {
        method: "elicitation/create",
        params: {
          mode: "form",
          message: "How was it?",
          requestedSchema: {
            type: "object",
            properties: { stars: { type: "integer", minimum: 1, maximum: 5 }, words: { type: "string" } },
            required: ["stars"],
          },
        },
      },
    });
    return { content: [{ type: "text", text: JSON.stringify(rating["content"] ?? "no rating") }] };
  });
  // #endregion
}
