import type { InputRequest, JsonObject, JsonValue } from "@longjobs/core";
import { formFields, type Choice, type FormField } from "./form-fields.ts";

/** A question as data: the prompt, and what may be answered. */
export function toQuestion(key: string, request: InputRequest): JsonObject {
  const schema = request.params?.["requestedSchema"];
  const [only, ...more] = formFields(request);
  const choices = more.length === 0 && only?.many !== true ? (only?.choices ?? []) : [];
  return {
    key,
    prompt: promptOf(request),
    ...(choices.length === 0 ? {} : { choices: choices.map(({ value }) => value) }),
    ...(schema === undefined || choices.length > 0 ? {} : { schema }),
  };
}

/** A question in one line of text. The fields are in it: many hosts show a model nothing but the text. */
export function questionLine(request: InputRequest): string {
  const fields = formFields(request);
  const [only, ...more] = fields;
  if (only === undefined) return promptOf(request);
  if (more.length > 0) return `${promptOf(request)} Fields: ${fields.map(fieldText).join(", ")}.`;
  if (only.choices.length > 0) {
    const lead = only.many ? "Allowed, one or more as a list" : "Allowed answers";
    return `${promptOf(request)} ${lead}: ${only.choices.map(choiceText).join(", ")}.`;
  }
  const kind = kinds[only.type];
  return kind === undefined ? promptOf(request) : `${promptOf(request)} Answer with ${kind}.`;
}

/** What an answer looks like, with a gap for what has to be filled in. */
export function exampleAnswer(request: InputRequest): JsonValue {
  const fields = formFields(request);
  if (fields.length > 1) return Object.fromEntries(fields.map(({ name }) => [name, "…"]));
  return request.params?.["url"] === undefined ? "…" : "done";
}

function promptOf(request: InputRequest): string {
  const { message, url } = (request.params ?? {}) as { message?: string; url?: string };
  return `${message ?? request.method}${url === undefined ? "" : ` Open ${url} and say when it is done.`}`;
}

const kinds: { readonly [type: string]: string } = {
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
};

function fieldText({ name, type, required, choices, many }: FormField): string {
  const allowed = choices.length === 0 ? [] : [choices.map(choiceText).join(" or ")];
  const words = [many ? "list" : type, ...allowed, ...(required ? [] : ["optional"])].filter(Boolean);
  return words.length === 0 ? name : `${name} (${words.join(", ")})`;
}

function choiceText({ value, title }: Choice): string {
  return title === value ? JSON.stringify(value) : `${JSON.stringify(value)} (${title})`;
}
