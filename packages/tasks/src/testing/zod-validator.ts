import { z } from "zod";
import { describeIssues } from "../standard-schema.ts";
import type { JsonSchemaValidator } from "../validate-input.ts";

/** Checks answers as the validator of an SDK does, which a simulated server does not have. */
export const zodValidator: JsonSchemaValidator = {
  getValidator: (schema) => {
    const parser = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
    return (value) => {
      const parsed = parser.safeParse(value);
      return parsed.success
        ? { valid: true }
        : { valid: false, errorMessage: describeIssues(parsed.error.issues) };
    };
  },
};
