import { LongJobsError } from "@longjobs/core";
import { CallToolResultV2Schema } from "@modelcontextprotocol/ext-tasks/core/v2";
import { describeIssues, type StandardSchema } from "./standard-schema.ts";
import type { ToolResult } from "./tool-config.ts";

/**
 * Checks what a handler returned as the SDK checks it for a synchronous call: the protocol's shape, and the
 * tool's `outputSchema` unless it is an error. Members that are `undefined` are members that are not there.
 *
 * @throws LongJobsError `internal_error`: the result that the model gets instead.
 */
export async function checkToolResult(
  tool: string,
  result: unknown,
  outputSchema: StandardSchema | undefined,
): Promise<ToolResult> {
  if (typeof result !== "object" || result === null)
    throw invalid(tool, "The handler returned no result object.");
  const present = Object.fromEntries(Object.entries(result).filter(([, value]) => value !== undefined));
  const complete: ToolResult = { content: [], ...present };
  const shape = CallToolResultV2Schema.safeParse({ ...complete, resultType: "complete" });
  if (!shape.success) throw invalid(tool, describeIssues(shape.error.issues));
  if (outputSchema === undefined || complete.isError === true) return complete;
  if (complete.structuredContent === undefined) throw invalid(tool, "It has no structuredContent.");
  const { issues } = await outputSchema["~standard"].validate(complete.structuredContent);
  if (issues !== undefined) throw invalid(tool, `structuredContent: ${describeIssues(issues)}`);
  return complete;
}

function invalid(tool: string, fault: string): LongJobsError {
  return new LongJobsError("internal_error", `The result of the tool ${tool} is not valid. ${fault}`, {
    recoveryHint: "This is a fault of the server; report it to its author.",
  });
}
