import type { JsonObject, LongJobsError, RequestContext } from "@longjobs/core";
import type { z } from "zod";
import type { Scope } from "../transfer-context.ts";

/** One of the tools. */
export interface TransferTool {
  readonly name: string;
  readonly config: {
    readonly title: string;
    readonly description: string;
    readonly inputSchema: z.ZodObject;
    readonly outputSchema: z.ZodObject;
    readonly annotations: {
      readonly readOnlyHint: boolean;
      readonly idempotentHint: boolean;
      readonly destructiveHint: boolean;
      readonly openWorldHint: boolean;
    };
  };
  serve(args: unknown, request: RequestContext): Promise<JsonObject>;
}

/** What a tool is made of, before its errors are told. */
export interface ToolParts<Args> extends Omit<TransferTool, "serve"> {
  readonly run: (args: Args, scope: Scope) => Promise<JsonObject>;
}

/** A tool result: the same for models that read text and for programs that read the structure. */
export function reply(structuredContent: JsonObject): JsonObject {
  return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
}

/** A refusal that a model can repair, as a tool result. */
export function errorReply(error: LongJobsError): JsonObject {
  const envelope = error.toJSON() as unknown as JsonObject;
  return {
    content: [{ type: "text", text: JSON.stringify(envelope) }],
    structuredContent: { error: envelope },
    isError: true,
  };
}
