import type { InputRequest, JsonObject } from "@longjobs/core";
import { z } from "zod";

import type { TaskToolConfig, Tasks, ToolResult, ToolTask } from "../../src/index.ts";
import { aborted, gate, type Gate } from "./turns.ts";

/** A result of one text. */
export function text(words: string): ToolResult {
  return { content: [{ type: "text", text: words }] };
}

/** A form of the given properties, all required. */
export function form(message: string, properties: { readonly [name: string]: JsonObject }): InputRequest {
  return {
    method: "elicitation/create",
    params: {
      mode: "form",
      message,
      requestedSchema: { type: "object", properties, required: Object.keys(properties) },
    },
  };
}

/** A form for a name. */
export const askName: InputRequest = form("Your name?", { name: { type: "string" } });

/** A tool that runs until the test opens its gate. */
export interface GatedTool {
  readonly gate: Gate;
  /** One entry per run of the handler. */
  readonly runs: ToolTask[];
}

/** Registers a tool that waits for its gate, and rejects when its signal is aborted. */
export function gatedTool(
  tasks: Tasks,
  name: string,
  config: Pick<TaskToolConfig, "fallback" | "inlineBudgetMs" | "onInterrupted" | "taskSupport"> = {
    inlineBudgetMs: 0,
  },
): GatedTool {
  const tool: GatedTool = { gate: gate(), runs: [] };
  tasks.taskTool(name, config, async (_args, task) => {
    tool.runs.push(task);
    await Promise.race([tool.gate.opened, aborted(task.signal)]);
    return text("done");
  });
  return tool;
}

/** Registers a tool that says what it was told to say, at once or as a task. */
export function echoTool(
  tasks: Tasks,
  name = "echo",
  config: Pick<TaskToolConfig, "fallback" | "inlineBudgetMs"> = {},
): void {
  tasks.taskTool(name, { inputSchema: z.object({ words: z.string() }), ...config }, ({ words }) =>
    text(words),
  );
}

/** Registers a tool that asks for a name and greets. */
export function greeter(
  tasks: Tasks,
  name = "greet",
  config: Pick<TaskToolConfig, "fallback" | "inlineBudgetMs"> = {},
): void {
  tasks.taskTool(name, config, async (_args, task) => {
    const { who } = await task.requestInput({ who: askName });
    return { ...text(`Hello: ${JSON.stringify(who)}`), structuredContent: { who } };
  });
}
