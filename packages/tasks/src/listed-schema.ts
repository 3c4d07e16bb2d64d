import type { JsonObject } from "@longjobs/core";
import { z } from "zod";
import type { StandardSchema, ToolSchema } from "./standard-schema.ts";

/** The JSON Schema side of a Standard Schema, which zod has from 4.2 on. */
interface JsonSchemaMaker {
  readonly "~standard": {
    readonly jsonSchema?: {
      input(options: { readonly target: string }): JsonObject;
      output(options: { readonly target: string }): JsonObject;
    };
  };
}

/** A schema to check by, and how it is listed. */
export interface ListedSchema {
  readonly schema: StandardSchema;
  readonly json: JsonObject;
}

/**
 * Prepares a tool's schema for an SDK that is not asked to list it.
 *
 * @throws TypeError for a schema that cannot be listed as the JSON Schema of an object.
 */
export function toListedSchema(
  option: string,
  given: ToolSchema | undefined,
  side: "input" | "output",
): ListedSchema | undefined {
  if (given === undefined) return undefined;
  const schema = toStandardSchema(option, given);
  const json: JsonObject = { type: "object", ...toJsonSchema(option, schema, side) };
  if (json["type"] !== "object") throw new TypeError(`${option} must be the schema of an object.`);
  return { schema, json };
}

/** The schema to check by. @throws TypeError for an object of something else than zod 4 schemas. */
export function toStandardSchema(option: string, given: ToolSchema): StandardSchema {
  return isStandardSchema(given) ? given : toObjectSchema(option, given);
}

/** True when a schema has a property of this name, as far as it can be listed: one that cannot is found out later. */
export function declaresProperty(given: ToolSchema | undefined, name: string): boolean {
  if (given === undefined) return false;
  if (!isStandardSchema(given)) return Object.hasOwn(given, name);
  try {
    const { properties } = toJsonSchema("inputSchema", given, "input");
    return Object.hasOwn((properties ?? {}) as JsonObject, name);
  } catch {
    // Whoever lists the schema says what is wrong with it.
    return false;
  }
}

/** Draft 7, which is what the SDK lists and what its clients check by. */
function toJsonSchema(option: string, schema: StandardSchema, side: "input" | "output"): JsonObject {
  const maker = (schema as JsonSchemaMaker)["~standard"].jsonSchema;
  if (maker !== undefined) return maker[side]({ target: "draft-07" });
  if (isZod4(schema)) return z.toJSONSchema(schema, { target: "draft-7", io: side }) as JsonObject;
  throw new TypeError(
    `${option} cannot be listed as JSON Schema: use zod 4, or a schema that has jsonSchema.`,
  );
}

function toObjectSchema(
  option: string,
  shape: { readonly [property: string]: StandardSchema },
): StandardSchema {
  const properties = Object.values(shape);
  if (!properties.every(isZod4))
    throw new TypeError(`${option} must be a schema, or an object of zod 4 schemas.`);
  return z.object(shape as unknown as z.core.$ZodShape);
}

function isStandardSchema(given: ToolSchema): given is StandardSchema {
  return "~standard" in given;
}

function isZod4(schema: StandardSchema): schema is StandardSchema & z.core.$ZodType {
  return typeof schema === "object" && schema !== null && "_zod" in schema;
}
