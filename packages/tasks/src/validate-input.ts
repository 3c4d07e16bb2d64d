import type { InputRequest, InputResponse } from "@longjobs/core";
import {
  CreateMessageResultV2Schema,
  ElicitResultV2Schema,
  InputRequestV2Schema,
  ListRootsResultV2Schema,
} from "@modelcontextprotocol/ext-tasks/core/v2";
import { describeIssues, type StandardIssue } from "./standard-schema.ts";

/** The SDK's JSON Schema validator, as far as it is used here. */
export interface JsonSchemaValidator {
  getValidator(
    schema: unknown,
  ): (value: unknown) => { readonly valid: boolean; readonly errorMessage?: string | undefined };
}

/** Checks questions before they are asked, and answers against them. */
export class AnswerValidator {
  /** By schema text, oldest first: the same question is often answered many times, on many server instances. */
  readonly #compiled = new Map<string, ReturnType<JsonSchemaValidator["getValidator"]>>();
  #jsonSchema: JsonSchemaValidator | undefined;

  /** The validator of the server instance that was attached last; an earlier one may be closed by now. */
  use(jsonSchema: JsonSchemaValidator): void {
    this.#jsonSchema = jsonSchema;
  }

  /**
   * Why a question cannot be asked: it is none of the protocol's three, or no answer to it could be checked.
   * `undefined` when it can.
   */
  findRequestFault(request: InputRequest): string | undefined {
    const parsed = InputRequestV2Schema.safeParse(request);
    if (!parsed.success) return describeIssues(parsed.error.issues);
    const requestedSchema = request.params?.["requestedSchema"];
    if (requestedSchema === undefined || this.#jsonSchema === undefined) return undefined;
    try {
      this.#validator(requestedSchema);
      return undefined;
    } catch (error) {
      return `requestedSchema: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** Why an answer does not fit its question, or `undefined` when it does. */
  findFault(request: InputRequest, response: InputResponse): string | undefined {
    const parsed = responseSchema(request.method).safeParse(response);
    if (!parsed.success) return describeIssues(parsed.error.issues);
    if (request.method !== "elicitation/create" || response["action"] !== "accept") return undefined;
    const requestedSchema = request.params?.["requestedSchema"];
    // A decline needs no content, and neither does a page that was opened.
    if (request.params?.["mode"] === "url" || requestedSchema === undefined) return undefined;
    return this.#findContentFault(requestedSchema, response["content"] ?? {});
  }

  #findContentFault(requestedSchema: unknown, content: unknown): string | undefined {
    try {
      const { valid, errorMessage } = this.#validator(requestedSchema)(content);
      return valid ? undefined : (errorMessage ?? "It does not fit the requested schema.");
    } catch (error) {
      return `The requested schema cannot be checked: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #validator(requestedSchema: unknown): ReturnType<JsonSchemaValidator["getValidator"]> {
    if (this.#jsonSchema === undefined) throw new Error("attach a server first");
    const text = JSON.stringify(requestedSchema);
    const known = this.#compiled.get(text);
    if (known !== undefined) return known;
    // What was not asked for must not reach the handler.
    const schema = { additionalProperties: false, ...(JSON.parse(text) as object) };
    const compiled = this.#jsonSchema.getValidator(schema);
    const [oldest] = this.#compiled.keys();
    if (oldest !== undefined && this.#compiled.size >= maxCompiled) this.#compiled.delete(oldest);
    this.#compiled.set(text, compiled);
    return compiled;
  }
}

/** A server asks few different questions; more than this many only cost a compilation each. */
const maxCompiled = 100;

interface ResponseSchema {
  safeParse(
    value: unknown,
  ): { success: true } | { success: false; error: { issues: readonly StandardIssue[] } };
}

function responseSchema(method: string): ResponseSchema {
  if (method === "sampling/createMessage") return CreateMessageResultV2Schema;
  if (method === "roots/list") return ListRootsResultV2Schema;
  return ElicitResultV2Schema;
}
