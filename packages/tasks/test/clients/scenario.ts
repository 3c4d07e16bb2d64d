import { expect } from "vitest";

/** How a client follows work that outlives its call. */
export type Way = "task" | "2025-11-25 task" | "tools";

/** What one client can do with the server, each by its own means; what it has no means for is absent. */
export interface ScenarioClient {
  listTools(): Promise<readonly string[]>;
  readResource(uri: string): Promise<string>;
  /** A call that is answered at once. */
  call(name: string, args: object): Promise<string>;
  /** A call whose work goes on. */
  start(name: string, args: object): Promise<Job>;
  /** Follows work that another session started. */
  readonly resume?: (reference: string) => Promise<Job>;
  /** Ends the session, and leaves its work alone. */
  close(): Promise<void>;
}

/** Work that goes on. */
export interface Job {
  /** Absent when the work had ended with its call. */
  readonly way: Way | undefined;
  /** What a later session needs, as text; absent when the client gives none away. */
  readonly reference: string | undefined;
  /** Resolves when the client has seen progress; says how. */
  readonly progress?: () => Promise<"notifications" | "status">;
  /** Follows the work to its end. Questions go to the `answer` that the client was opened with. */
  settle(): Promise<Settled>;
  /** Cancels the work; says how it ended. */
  readonly cancel?: () => Promise<string>;
}

/** How work ended. */
export interface Settled {
  readonly text: string;
  /** How each question came: to the client itself, or to the model. */
  readonly asked: readonly ("the client" | "the model")[];
}

/** What the matrix says of one client. */
export interface Features {
  readonly long: string;
  readonly progress: string;
  readonly question: string;
  readonly cancel: string;
  readonly later: string;
}

/** Opens a session whose questions are answered by `answer`. */
export type OpenClient = (answer: (question: string) => string) => Promise<ScenarioClient>;

/** A cell for what the client has no means for. */
const none = "–";

/** The scenario: the same for every client, whatever its means. */
export async function runScenario(open: OpenClient): Promise<Features> {
  const words = ["green", "blue"];
  const client = await open(() => words.shift() ?? "red");
  expect(await client.listTools()).toEqual(expect.arrayContaining(["quick", "slow", "asking"]));
  expect(await client.readResource("notes://one"), "what the server has of its own").toBe("A note.");
  expect(await client.call("quick", { name: "Ada" })).toBe("Hello, Ada.");

  const slow = await client.start("slow", { name: "Grace" });
  const progress = (await slow.progress?.()) ?? none;
  expect(await client.call("quick", { name: "Grace" })).toBe("Hello, Grace.");
  expect(await slow.settle()).toEqual({ text: "Grace is done.", asked: [] });

  const question = await answerQuestion(client, words);
  const cancel =
    slow.cancel === undefined ? none : await (await client.start("slow", { name: "nobody" })).cancel?.();
  await client.close();
  const later = await readLater(open, slow.reference);
  return { long: slow.way ?? none, progress, question, cancel: cancel ?? none, later };
}

/** The first answer fits no choice: the question comes again, and only that one. */
async function answerQuestion(client: ScenarioClient, words: readonly string[]): Promise<string> {
  const { text, asked } = await (await client.start("asking", {})).settle();
  if (text.includes("input_not_supported")) return "refused";
  expect(text).toBe("The wall is blue.");
  expect(words, "both answers were needed").toEqual([]);
  expect(asked).toHaveLength(2);
  return [...new Set(asked)].join(", ");
}

async function readLater(open: OpenClient, reference: string | undefined): Promise<string> {
  if (reference === undefined) return none;
  const later = await open(() => "red");
  const job = await later.resume?.(reference);
  expect(await job?.settle()).toEqual({ text: "Grace is done.", asked: [] });
  await later.close();
  return "result";
}
