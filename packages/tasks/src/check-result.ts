import { LongJobsError, normalizeJsonObject, type JsonLimits, type JsonObject } from "@longjobs/core";
import { CallToolResultV2Schema } from "@modelcontextprotocol/ext-tasks/core/v2";
import { dropUndefined } from "./drop-undefined.ts";
import { describeIssues, type StandardSchema } from "./standard-schema.ts";

/**
 * Checks what a handler returned as the SDK checks it for a synchronous call: the protocol's shape, and the
 * tool's `outputSchema` unless it is an error. Members that are `undefined` are members that are not there.
 *
 * @throws LongJobsError `invalid_json`, `record_too_large` or `internal_error`: what the model gets instead.
 */
export async function checkToolResult(
  tool: string,
  result: unknown,
  outputSchema: StandardSchema | undefined,
  limits: JsonLimits,
): Promise<JsonObject> {
  if (typeof result !== "object" || result === null || Array.isArray(result))
    throw invalid(tool, "The handler returned no result object.");
  const complete = normalizeJsonObject(
    { content: [], ...(dropUndefined(result) as object) },
    "result",
    limits,
  );
  const { resultType = "complete" } = complete;
  // Spec "Polymorphic Results": servers "MUST NOT set `resultType` to `"task"` on result types other than `CreateTaskResult`".
  if (resultType !== "complete")
    throw invalid(
      tool,
      "It has a resultType of its own; return a plain tool result, or ask with requestInput.",
    );
  const shape = CallToolResultV2Schema.safeParse({ ...complete, resultType });
  if (!shape.success) throw invalid(tool, describeIssues(shape.error.issues));
  if (outputSchema === undefined || complete["isError"] === true) return complete;
  if (complete["structuredContent"] === undefined) throw invalid(tool, "It has no structuredContent.");
  const { issues } = await outputSchema["~standard"].validate(complete["structuredContent"]);
  if (issues !== undefined) throw invalid(tool, `structuredContent: ${describeIssues(issues)}`);
  return complete;
}

function invalid(tool: string, fault: string): LongJobsError {
  return new LongJobsError("internal_error", `The result of the tool ${tool} is not valid. ${fault}`, {
    recoveryHint: "This is a fault of the server; report it to its author.",
  });
}
