import { words, type Entry } from "./entries.ts";
import type { WireResult } from "./wire.ts";

/** What a model did, and where it ended. */
export interface Walk {
  /** The names of the tools that were called, in order. */
  readonly calls: readonly string[];
  readonly result: WireResult;
}

/**
 * Walks from a first call to an end as a model that has never heard of tasks: it reads the text of each reply, and does what
 * it says. It knows no name of ours, no id and no field of `structuredContent`.
 *
 * @param answer - What the user says to a question.
 */
export async function walk(
  client: Entry,
  name: string,
  args: object,
  answer: (question: string) => unknown,
): Promise<Walk> {
  const calls: string[] = [];
  let next: Instruction | undefined = { name, args };
  for (;;) {
    calls.push(next.name);
    if (calls.length > 50) throw new Error(`No end in sight: ${calls.join(", ")}`);
    const result = await client.call(next.name, next.args);
    next = readInstruction(words(result), answer);
    if (next === undefined) return { calls, result };
  }
}

interface Instruction {
  readonly name: string;
  readonly args: object;
}

function readInstruction(text: string, answer: (question: string) => unknown): Instruction | undefined {
  const [, respond, shape] = /Answer with (\w+) (\{.*\})\./.exec(text) ?? [];
  if (respond !== undefined && shape !== undefined) {
    const questions = Array.from(text.matchAll(/^- (.*)$/gm), ([, line = ""]) => line);
    return { name: respond, args: fill(JSON.parse(shape) as Form, questions, answer) };
  }
  const [, name, args] = /Call (\w+) with (\{.*?\})/.exec(text) ?? [];
  return name === undefined || args === undefined ? undefined : { name, args: JSON.parse(args) as object };
}

interface Form {
  readonly response?: unknown;
  readonly answers?: { readonly [key: string]: unknown };
}

function fill(form: Form, questions: readonly string[], answer: (question: string) => unknown): object {
  if (form.answers === undefined) return { ...form, response: answer(questions[0] ?? "") };
  const answers = Object.keys(form.answers).map((key) => {
    const line = questions.find((question) => question.startsWith(`${key}: `)) ?? "";
    return [key, answer(line.slice(key.length + 2))];
  });
  return { ...form, answers: Object.fromEntries(answers) };
}
