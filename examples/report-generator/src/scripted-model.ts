/* A model in a few lines: it sees the text of each reply, and does what the text says. It has never heard of tasks. */

/** A call that a model decides on. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: { readonly [name: string]: unknown };
}

/** What comes next by the text of a reply; `undefined` when there is nothing left to do. */
export function nextCall(text: string, last: ToolCall, answer: () => string): ToolCall | undefined {
  const question = /Answer with (\w+) (\{.*\})\./.exec(text);
  if (question !== null) {
    const { taskId } = JSON.parse(question[2] ?? "{}") as { readonly taskId: string };
    return { name: question[1] ?? "", arguments: { taskId, response: answer() } };
  }
  const wait = /Call (\w+) with (\{.*?\})/.exec(text);
  if (wait !== null)
    return { name: wait[1] ?? "", arguments: JSON.parse(wait[2] ?? "{}") as ToolCall["arguments"] };
  // A refused answer comes back as an error that says what to do.
  if (text.includes("the question is still open")) {
    return { ...last, arguments: { ...last.arguments, response: answer() } };
  }
  return undefined;
}
