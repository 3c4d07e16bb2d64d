import {
  LongJobsError,
  type InputRequest,
  type InputResponse,
  type JsonObject,
  type JsonValue,
} from "@longjobs/core";
import { formFields, type Choice, type FormField } from "./form-fields.ts";

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
  const fields = formFields(request);
  if (isObject(answer)) return { action, content: readFields(fields, answer) };
  const [only, ...more] = fields;
  if (only === undefined || more.length > 0) {
    const names = fields.map(({ name }) => name).join(", ");
    throw new LongJobsError("invalid_input_response", `The answer needs these fields: ${names}.`, {
      recoveryHint: `Answer with an object that has: ${names}.`,
    });
  }
  return { action, content: { [only.name]: readField(only, answer) } };
}

function readFields(fields: readonly FormField[], answer: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => {
      const field = fields.find((candidate) => candidate.name === name);
      return [name, field === undefined ? value : readField(field, value)];
    }),
  );
}

/** Models like to write everything as text: what the field wants is taken from it where it is plain. */
function readField({ type, choices, many }: FormField, answer: JsonValue): JsonValue {
  if (many) {
    const given = Array.isArray(answer) ? (answer as readonly JsonValue[]) : [answer];
    return given.map((value) => (typeof value === "string" ? nearestChoice(value, choices) : value));
  }
  if (typeof answer !== "string") return answer;
  const text = answer.trim();
  switch (type) {
    case "number":
    case "integer":
      return text !== "" && Number.isFinite(Number(text)) ? Number(text) : answer;
    case "boolean":
      if (/^(true|yes)$/i.test(text)) return true;
      return /^(false|no)$/i.test(text) ? false : answer;
    default:
      return nearestChoice(answer, choices);
  }
}

/** A choice in other case or with blanks around it is the choice, and so is the title that people see of it. */
function nearestChoice(answer: string, choices: readonly Choice[]): string {
  const plain = (text: string): string => text.trim().toLowerCase();
  const wanted = plain(answer);
  const found =
    choices.find(({ value }) => value === answer) ??
    choices.find(({ value }) => plain(value) === wanted) ??
    choices.find(({ title }) => plain(title) === wanted);
  return found?.value ?? answer;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
