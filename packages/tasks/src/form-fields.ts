import type { InputRequest, JsonObject, JsonValue } from "@longjobs/core";

/** One field of a form, as far as a model has to know it. */
export interface FormField {
  readonly name: string;
  /** The JSON Schema type; empty where the form does not say. */
  readonly type: string;
  readonly required: boolean;
  /** What may be chosen, with the words that people see; empty for a free answer. */
  readonly choices: readonly Choice[];
  /** True when several of the choices may be given. */
  readonly many: boolean;
}

/** One choice: what is answered, and what people see. */
export interface Choice {
  readonly value: string;
  readonly title: string;
}

/** The fields of the form that a question shows; none for a question of another kind. */
export function formFields(request: InputRequest): readonly FormField[] {
  const schema = objectOf(request.params?.["requestedSchema"]);
  const required = listOf(schema["required"]);
  return Object.entries(objectOf(schema["properties"])).map(([name, given]) => {
    const field = objectOf(given);
    const many = field["type"] === "array";
    return {
      name,
      type: typeof field["type"] === "string" ? field["type"] : "",
      required: required.includes(name),
      choices: choicesOf(many ? objectOf(field["items"]) : field),
      many,
    };
  });
}

/** The protocol writes choices as `enum`, with names beside it in older revisions, or as constants with titles. */
function choicesOf(field: JsonObject): readonly Choice[] {
  const titled = listOf(field["oneOf"] ?? field["anyOf"]).map(objectOf);
  if (titled.length > 0) {
    return titled.flatMap(({ const: value, title }) =>
      typeof value === "string" ? [{ value, title: typeof title === "string" ? title : value }] : [],
    );
  }
  const names = listOf(field["enumNames"]);
  return listOf(field["enum"]).flatMap((value, index) => {
    const title = names[index];
    return typeof value === "string" ? [{ value, title: typeof title === "string" ? title : value }] : [];
  });
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
