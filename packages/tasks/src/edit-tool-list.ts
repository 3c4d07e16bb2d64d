import { withKeyArgument } from "./idempotency-key.ts";
import type { TaskTool } from "./tool-config.ts";

/** One entry of a `tools/list` answer, as far as it is read here. */
export interface ListedTool {
  readonly name: string;
  readonly [member: string]: unknown;
}

/** What the list depends on. */
export interface ListView {
  /** True when this very request declares the Tasks extension. */
  readonly declaresTasks: boolean;
  /** True for revision 2026-07-28. */
  readonly modern: boolean;
  readonly taskTools: ReadonlyMap<string, TaskTool>;
  readonly fallbackNames: ReadonlySet<string>;
}

/**
 * The list as the client of this very request needs it. A client with tasks does not see the tools that stand
 * in for them. Any other client may get a handle instead of a result, so the `outputSchema` of such a tool is not shown: clients
 * refuse results without the structured content that was announced.
 */
export function editToolList(tools: readonly ListedTool[], view: ListView): ListedTool[] {
  const withKeys = tools.map((tool) => showKeyArgument(tool, view.taskTools.get(tool.name)));
  const listed = needsFallback(view)
    ? withKeys
    : withKeys.filter(({ name }) => !view.fallbackNames.has(name));
  if (view.declaresTasks) return listed;
  return listed.map((tool) => {
    if (view.taskTools.get(tool.name)?.fallback !== "tools") return tool;
    const { outputSchema: _hidden, ...shown } = tool;
    return shown;
  });
}

/**
 * A tool that must be a task starts nothing for a client of 2026-07-28 without them. One of 2025-11-25 calls it as a task, and
 * may not be reachable for its questions.
 */
function needsFallback({ declaresTasks, modern, taskTools }: ListView): boolean {
  if (declaresTasks) return false;
  return [...taskTools.values()].some(
    ({ fallback, taskSupport }) => fallback === "tools" && !(modern && taskSupport === "required"),
  );
}

function showKeyArgument(tool: ListedTool, taskTool: TaskTool | undefined): ListedTool {
  const name = taskTool?.idempotencyArgument;
  return name === undefined ? tool : { ...tool, inputSchema: withKeyArgument(tool["inputSchema"], name) };
}

/** The list with what revision 2025-11-25 wants to know: which tools may be called as a task. */
export function showTaskSupport(
  tools: readonly ListedTool[],
  taskTools: ReadonlyMap<string, TaskTool>,
): ListedTool[] {
  return tools.map((tool) => {
    const taskSupport = taskTools.get(tool.name)?.taskSupport;
    return taskSupport === undefined ? tool : { ...tool, execution: { taskSupport } };
  });
}
