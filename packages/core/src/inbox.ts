import { LongJobsError } from "./longjobs-error.ts";
import type { InboxEntry, InputRequest, InputResponse, TaskRecord } from "./task-record.ts";

/*
 * The durable inbox: questions and answers, by wire key, until the task is terminal.
 *
 * A handler asks under a key of its own, which is also the first wire key. An entry is `open` until a client
 * answers it (`answered`), the task is cancelled (`withdrawn`) or a bad answer came (`superseded`): then the
 * question stands again under a fresh wire key, whose entry names the handler's key in `replaces`. So a wire
 * key means one question for the whole life of the task (spec "Task Update Requests": "Each request key in
 * `inputRequests` MUST be unique over the lifetime of a single task"), while the handler waits for its own.
 */

/** The inbox as it is stored. */
export type Inbox = NonNullable<TaskRecord["inputs"]>;

/** A question that a handler asks, with the fingerprint of its request. */
export interface Question {
  readonly key: string;
  readonly request: InputRequest;
  readonly fingerprint: string;
}

/** How often a question is asked again after a bad answer; the next bad answer goes to the handler. */
const maxRepeats = 3;

/** Adds what is not there yet. Returns the same inbox when nothing is new. @throws `input_key_reused` */
export function openQuestions(inbox: Inbox, questions: readonly Question[], attempt: number): Inbox {
  const added: [string, InboxEntry][] = [];
  for (const { key, request, fingerprint } of questions) {
    const entry = ownEntry(inbox, key);
    if (entry === undefined) added.push([key, { fingerprint, request, state: "open", attempt }]);
    else if (entry.fingerprint !== fingerprint || entry.replaces !== undefined) throw keyReused(key);
  }
  return added.length === 0 ? inbox : withEntries(inbox, added);
}

/** The answers for all `keys`, or `undefined` while one is missing. @throws `invalid_input_response`, `cancelled` */
export function readAnswers(inbox: Inbox, keys: readonly string[]): [string, InputResponse][] | undefined {
  const answers: [string, InputResponse][] = [];
  for (const key of keys) {
    const entry = standingEntry(inbox, key);
    if (entry?.state === "withdrawn") {
      throw new LongJobsError(
        "cancelled",
        `The question ${key} was withdrawn because its task is being cancelled.`,
      );
    }
    if (entry?.invalid !== undefined) throw invalidAnswer(key, entry.invalid);
    if (entry?.answer === undefined) return undefined;
    answers.push([key, entry.answer]);
  }
  return answers;
}

/** Every answered question, by the handler's key. */
export function allAnswers(inbox: Inbox): [string, InputResponse][] {
  return Object.entries(inbox).flatMap(([wireKey, { answer, replaces }]) =>
    answer === undefined ? [] : [[replaces ?? wireKey, answer] satisfies [string, InputResponse]],
  );
}

/** What {@link acceptAnswers} needs to judge and to ask again. */
export interface AnswerRules {
  readonly validate: (request: InputRequest, response: InputResponse) => string | undefined;
  /** A wire key that this task has never used. */
  readonly freshKey: (key: string) => string;
}

/** An answer, or the reason why what came is none. */
export type Answer = { readonly response: InputResponse } | { readonly malformed: string };

/**
 * Stores the answers to open questions, each on its own: the first answer wins; unknown, answered, withdrawn
 * and superseded keys are ignored; a bad answer puts the question again. Returns the same inbox when nothing
 * changes.
 */
export function acceptAnswers(inbox: Inbox, answers: ReadonlyMap<string, Answer>, rules: AnswerRules): Inbox {
  let next = inbox;
  for (const [wireKey, answer] of answers) {
    const entry = ownEntry(next, wireKey);
    if (entry?.state !== "open" || entry.request === undefined) continue;
    const reason = "malformed" in answer ? answer.malformed : rules.validate(entry.request, answer.response);
    if (reason === undefined && "response" in answer) {
      next = withEntries(next, [[wireKey, { ...entry, state: "answered", answer: answer.response }]]);
    } else next = askAgain(next, wireKey, entry, reason ?? "It is not an answer.", rules);
  }
  return next;
}

/** The wire keys that have an answer now and had none before. */
export function answeredKeys(now: Inbox, before: Inbox): string[] {
  return Object.keys(now).filter(
    (wireKey) => now[wireKey]?.answer !== undefined && ownEntry(before, wireKey)?.answer === undefined,
  );
}

/** Withdraws every open question. Returns the same inbox when none is open. */
export function withdrawQuestions(inbox: Inbox): Inbox {
  const open = Object.entries(inbox).filter(([, entry]) => entry.state === "open");
  if (open.length === 0) return inbox;
  return withEntries(
    inbox,
    open.map(([wireKey, entry]) => [wireKey, { ...entry, state: "withdrawn" }]),
  );
}

/** The status that goes with an inbox: a task waits for input as long as a question is open. */
export function inboxStatus(inbox: Inbox): "working" | "input_required" {
  return Object.values(inbox).some(({ state }) => state === "open") ? "input_required" : "working";
}

function askAgain(
  inbox: Inbox,
  wireKey: string,
  entry: InboxEntry,
  reason: string,
  rules: AnswerRules,
): Inbox {
  const key = entry.replaces ?? wireKey;
  const repeats = Object.values(inbox).filter(({ replaces }) => replaces === key).length;
  if (repeats >= maxRepeats)
    return withEntries(inbox, [[wireKey, { ...entry, state: "answered", invalid: reason }]]);
  // Only the first question keeps its request: the repeats are worded from it, not from each other.
  const { request: repeated, ...bare } = entry;
  const original = ownEntry(inbox, key)?.request ?? repeated;
  const superseded: InboxEntry =
    wireKey === key ? { ...entry, state: "superseded" } : { ...bare, state: "superseded" };
  const again: InboxEntry = {
    fingerprint: entry.fingerprint,
    ...(original === undefined ? {} : { request: repeatRequest(original, reason) }),
    state: "open",
    attempt: entry.attempt,
    replaces: key,
  };
  return withEntries(inbox, [
    [wireKey, superseded],
    [rules.freshKey(key), again],
  ]);
}

/** The request to ask again after a bad answer. Elicitations carry a message for the person; the other kinds have no place for a reason. */
export function repeatRequest(request: InputRequest, reason: string): InputRequest {
  const message = request.params?.["message"];
  if (typeof message !== "string") return request;
  return {
    ...request,
    params: { ...request.params, message: `${message}\n\nThe last answer was not accepted: ${reason}` },
  };
}

/** The entry under which the handler's question stands now. */
function standingEntry(inbox: Inbox, key: string): InboxEntry | undefined {
  const first = ownEntry(inbox, key);
  if (first?.state !== "superseded") return first;
  return Object.values(inbox).find(({ replaces, state }) => replaces === key && state !== "superseded");
}

/** `__proto__` and the like are ordinary keys: only own properties count. */
function ownEntry(inbox: Inbox, key: string): InboxEntry | undefined {
  return Object.hasOwn(inbox, key) ? inbox[key] : undefined;
}

function withEntries(inbox: Inbox, entries: readonly [string, InboxEntry][]): Inbox {
  return Object.fromEntries([...Object.entries(inbox), ...entries]);
}

function keyReused(key: string): LongJobsError {
  return new LongJobsError(
    "input_key_reused",
    `The key ${key} belongs to another question of this task; ask under a key of its own.`,
    { param: key },
  );
}

function invalidAnswer(key: string, reason: string): LongJobsError {
  return new LongJobsError(
    "invalid_input_response",
    `The question ${key} was answered wrongly ${maxRepeats + 1} times; the last answer was not accepted: ${reason}`,
    { param: key },
  );
}
