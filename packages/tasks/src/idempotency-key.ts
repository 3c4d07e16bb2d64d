import type { JsonObject } from "@longjobs/core";
import type { ToolCall } from "./tool-call.ts";
import type { TaskTool } from "./tool-config.ts";

/** Where a client puts the key, in the `_meta` of its request. The protocol has no name for it (decision 0010). */
export const idempotencyMetaKey = "longjobs/idempotencyKey";

/** An idempotency key as it came, not checked yet. */
export interface GivenKey {
  readonly value: unknown;
  /** What the caller calls it. */
  readonly param: string;
  /** True when a model wrote it, as an argument of the tool. */
  readonly byModel: boolean;
}

/**
 * The idempotency key of a call, if it has one. The argument counts before the metadata: a model that repeats a call repeats
 * its argument, while its host may send other metadata with each request.
 */
export function givenKey(tool: TaskTool, { keyArgument, request }: ToolCall): GivenKey | undefined {
  const { idempotencyArgument } = tool;
  if (idempotencyArgument !== undefined && keyArgument !== undefined)
    return { value: keyArgument, param: idempotencyArgument, byModel: true };
  const value = request.meta[idempotencyMetaKey];
  return value === undefined ? undefined : { value, param: idempotencyMetaKey, byModel: false };
}

/** The arguments without the one that is the key: neither the schema of the tool nor its handler sees that one. */
export function splitKeyArgument(
  tool: TaskTool | undefined,
  given: unknown,
): { readonly rest: unknown; readonly keyArgument?: unknown } {
  const name = tool?.idempotencyArgument;
  if (name === undefined || typeof given !== "object" || given === null || !Object.hasOwn(given, name))
    return { rest: given };
  const { [name]: keyArgument, ...rest } = given as { readonly [argument: string]: unknown };
  return { rest, keyArgument };
}

/** How the argument is listed: the words are all that a model knows of it. */
const listedArgument: JsonObject = {
  type: "string",
  minLength: 1,
  maxLength: 256,
  description:
    "Optional: makes this call safe to repeat. Choose a new value, such as a UUID, for each new piece of work. To repeat a call " +
    "whose answer was lost or not clear, pass the SAME value with the same arguments: the work is not done twice, and you get its answer.",
};

/** A tool's listed input schema with the argument for the key. */
export function withKeyArgument(inputSchema: unknown, name: string): JsonObject {
  const schema = (inputSchema ?? { type: "object" }) as JsonObject & { readonly properties?: JsonObject };
  return { ...schema, properties: { ...schema.properties, [name]: listedArgument } };
}
