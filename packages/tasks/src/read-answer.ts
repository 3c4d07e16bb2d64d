import {
  LongJobsError,
  type InputRequest,
  type InputResponse,
  type JsonObject,
  type JsonValue,
} from "@longjobs/core";

/** How a model says that a question is not answered. */
export type AnswerAction = "accept" | "decline" | "cancel";

/**
 * Makes the protocol's response of what a model gave as an answer: a text or number for a form with one field, or the
 * fields of a form. The result still has to be checked against the question.
 *
 * @throws `invalid_input_response` for a question that a model cannot answer.
 */
export function readAnswer(request: InputRequest, answer: JsonValue, action: AnswerAction): InputResponse {
  if (request.method !== "elicitation/create") {
    throw new LongJobsError("invalid_input_response", `${request.method} cannot be answered in words.`, {
      recoveryHint: "Use a client that supports tasks, or cancel the task.",
    });
  }
  if (action !== "accept") return { action };
  if (request.params?.["mode"] === "url") return { action };
  if (isObject(answer)) return { action, content: answer };
  const fields = Object.entries(fieldsOf(request));
  const [name, field] = fields[0] ?? [];
  if (fields.length !== 1 || name === undefined) {
    const names = fields.map(([key]) => key).join(", ");
    throw new LongJobsError("invalid_input_response", `The answer needs these fields: ${names}.`, {
      recoveryHint: `Answer with an object that has: ${names}.`,
    });
  }
  return { action, content: { [name]: toFieldValue(answer, field) } };
}

/** Models like to write everything as text: what the field wants is taken from it where it is plain. */
function toFieldValue(answer: JsonValue, field: JsonObject | undefined): JsonValue {
  if (typeof answer !== "string") return answer;
  const text = answer.trim();
  const { type, enum: choices } = field ?? {};
  switch (typeof type === "string" ? type : "") {
    case "number":
    case "integer":
      return text !== "" && Number.isFinite(Number(text)) ? Number(text) : answer;
    case "boolean":
      if (/^(true|yes)$/i.test(text)) return true;
      return /^(false|no)$/i.test(text) ? false : answer;
    case "string":
      return nearestChoice(answer, choices);
    default:
      return answer;
  }
}

/** A choice in other case or with blanks around it is the choice. */
function nearestChoice(answer: string, choices: JsonValue | undefined): string {
  if (!Array.isArray(choices)) return answer;
  const plain = (text: unknown): string => String(text).trim().toLowerCase();
  const found: unknown =
    choices.find((choice) => choice === answer) ?? choices.find((choice) => plain(choice) === plain(answer));
  return typeof found === "string" ? found : answer;
}

function fieldsOf(request: InputRequest): { readonly [name: string]: JsonObject } {
  const schema = request.params?.["requestedSchema"] as JsonObject | undefined;
  return (schema?.["properties"] ?? {}) as { readonly [name: string]: JsonObject };
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
