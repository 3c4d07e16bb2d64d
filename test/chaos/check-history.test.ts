import { describe, expect, test } from "vitest";

import type { Sight } from "../recovery/witness.ts";
import { checkHistory, neverHappened } from "./check-history.ts";
import type { RunHistory, TaskView, Version } from "./history.ts";

const first = { owner: "A", token: "a1", durationMs: 1_000 };
const second = { owner: "B", token: "b1", durationMs: 1_000 };

function version(number: number, changes: Partial<Version>): Version {
  return { taskId: "t", version: number, status: "working", attempt: 1, lease: first, ...changes };
}

function saved(owner: string, attempt: number, step: number): NonNullable<Version["checkpoint"]> {
  return { value: { mark: { owner, attempt }, step }, asked: {} };
}

function inputs(state: "open" | "answered", value = "yes"): NonNullable<Version["inputs"]> {
  const answer = { action: "accept", content: { answer: value } };
  return { q: { fingerprint: "f", state, attempt: 1, ...(state === "answered" ? { answer } : {}) } };
}

function view(status: string, second2: number, more: Partial<TaskView> = {}): TaskView {
  return { taskId: "t", status, lastUpdatedAt: `2026-01-01T00:00:0${second2}.000Z`, ...more };
}

function sight(did: Sight["did"], attempt: number, more: Partial<Sight> = {}): Sight {
  return { pid: 1, taskId: "t", attempt, did, ...more };
}

const done = view("completed", 9, { result: { content: [{ text: "Approved by yes." }] } });

/** A task that was saved by A, taken over by B, asked, was answered and ended. */
const good: RunHistory = {
  accepted: [{ taskId: "t", tool: "settle" }],
  reads: [
    { view: view("working", 1), sentMs: 10, answeredMs: 12 },
    { view: view("input_required", 5), sentMs: 20, answeredMs: 25 },
    { view: done, sentMs: 40, answeredMs: 44 },
    { view: done, sentMs: 50, answeredMs: 51 },
  ],
  answers: [
    { taskId: "t", key: "q", value: "yes", sentMs: 30, acknowledgedMs: 33 },
    { taskId: "t", key: "q", value: "no", sentMs: 32, acknowledgedMs: 36 },
  ],
  cancelled: new Set(),
  refusals: [],
  sights: [
    sight("began", 1),
    sight("began", 2),
    sight("got", 2, { answer: "yes", by: "ask" }),
    sight("returned", 2, { answer: "Approved by yes." }),
  ],
  versions: [
    version(7, {}),
    version(8, { checkpoint: saved("A", 1, 1) }),
    version(9, { checkpoint: saved("A", 1, 1), lease: second, leaseLeftMs: -20 }),
    version(10, { checkpoint: saved("A", 1, 1), lease: second, attempt: 2 }),
    version(11, { checkpoint: saved("B", 2, 2), lease: second, attempt: 2 }),
    version(12, {
      checkpoint: saved("B", 2, 2),
      lease: second,
      attempt: 2,
      status: "input_required",
      inputs: inputs("open"),
    }),
    version(13, { checkpoint: saved("B", 2, 2), lease: second, attempt: 2, inputs: inputs("answered") }),
    {
      taskId: "t",
      version: 14,
      status: "completed",
      attempt: 2,
      finishedBy: "b1",
    },
  ],
};

function withVersion(number: number, changes: Partial<Version>): RunHistory {
  const versions = good.versions.map((kept) => (kept.version === number ? { ...kept, ...changes } : kept));
  return { ...good, versions };
}

function withSight(extra: Sight): RunHistory {
  return { ...good, sights: [...good.sights, extra] };
}

function withRead(shown: TaskView, sentMs: number): RunHistory {
  return { ...good, reads: [...good.reads, { view: shown, sentMs, answeredMs: sentMs + 1 }] };
}

test("a run in which everything went well breaks no rule", () => {
  expect(checkHistory(good)).toEqual([]);
});

test("a run in which nothing happened breaks no rule, and is told to have shown nothing", () => {
  const cancelled = new Set<string>();
  const empty = { accepted: [], reads: [], answers: [], cancelled, refusals: [], sights: [], versions: [] };
  expect(checkHistory(empty)).toEqual([]);
  expect(neverHappened(empty)).toHaveLength(6);
  expect(neverHappened(good)).toEqual([]);
});

const breaches: { readonly [what: string]: readonly [RunHistory, RegExp] } = {
  "a server refused what it should not": [{ ...good, refusals: ["no"] }, /^no$/],
  "an accepted task is not in the backend": [
    { ...good, accepted: [...good.accepted, { taskId: "lost", tool: "settle" }] },
    /lost was accepted, and the backend never had it/,
  ],
  "a task never ends": [{ ...good, reads: good.reads.slice(0, 2) }, /nobody was shown its end/],
  "an end is shown in two ways": [withRead({ ...done, result: {} }, 60), /ended as .* and as/],
  "an end is shown that the backend does not have": [
    withVersion(14, { status: "failed" }),
    /shown as completed, and the backend has it as failed/,
  ],
  "a reader is taken back in time": [
    withRead(view("working", 2), 30),
    /as of 2026-01-01T00:00:05.000Z, then/,
  ],
  "a task that has ended is working": [
    withRead(view("working", 9), 60),
    /had ended, and was shown as working/,
  ],
  "a write is missing": [withVersion(11, { version: 12 }), /from version 10 to 12/],
  "two writes have one version": [withVersion(11, { version: 10 }), /from version 10 to 10/],
  "a task is written after its end": [
    withVersion(13, { status: "completed" }),
    /was completed and written again/,
  ],
  "a checkpoint goes back": [
    withVersion(13, { checkpoint: saved("B", 2, 1) }),
    /had saved step 2, then step 1/,
  ],
  "a lease is taken that is alive": [withVersion(9, { leaseLeftMs: 40 }), /taken 40 ms before its end/],
  "a run is left out": [withVersion(10, { attempt: 3 }), /run 1 was followed by 3/],
  "a run begins without a lease": [withVersion(9, { lease: undefined }), /begun without a lease/],
  "a run saves that was replaced": [
    withVersion(11, { checkpoint: saved("A", 1, 2) }),
    /run 1 of A wrote while run 2 of B held it/,
  ],
  "a run saves between a claim and the next run": [
    withVersion(10, { checkpoint: saved("A", 1, 2) }),
    /run 1 of A wrote while run 1 of B held it/,
  ],
  "a run reports that was replaced": [
    withVersion(12, { progress: { message: JSON.stringify({ owner: "A", attempt: 1 }) } }),
    /run 1 of A wrote/,
  ],
  "a task ends under an old token": [withVersion(14, { finishedBy: "a1" }), /ended under a1, and b1 held it/],
  "an answer changes": [
    {
      ...good,
      versions: good.versions.flatMap((kept) =>
        kept.version === 13
          ? [kept, { ...kept, version: 14, inputs: inputs("answered", "no") }]
          : { ...kept, version: kept.version > 13 ? kept.version + 1 : kept.version },
      ),
    },
    /answered with yes, then with no/,
  ],
  "an answer was given by nobody": [
    withVersion(13, { inputs: inputs("answered", "perhaps") }),
    /nobody answered q with perhaps/,
  ],
  "an answer that was acknowledged first is not the one": [
    {
      ...good,
      answers: good.answers.map((given) =>
        given.value === "no" ? { ...given, sentMs: 20, acknowledgedMs: 25 } : given,
      ),
    },
    /no was acknowledged for q before yes was sent/,
  ],
  "an acknowledged answer was never kept": [
    {
      ...good,
      answers: [...good.answers, { taskId: "t", key: "r", value: "so", sentMs: 1, acknowledgedMs: 2 }],
    },
    /so was acknowledged for r, and the backend never had it/,
  ],
  "a handler gets another answer": [
    withSight(sight("got", 3, { answer: "no", by: "ask" })),
    /run 3 got no for/,
  ],
  "a handler gets an answer twice by one way": [
    withSight(sight("got", 2, { answer: "yes", by: "ask" })),
    /got the answer to {2}2 times by ask/,
  ],
  "two runs have one number": [withSight(sight("began", 2)), /was begun as 1,2,2/],
  "a tool that may begin once is begun twice": [
    { ...good, accepted: [{ taskId: "t", tool: "once" }] },
    /may begin once, and was begun as 1,2/,
  ],
  "a task is cancelled that nobody cancelled": [
    { ...good, reads: [{ view: view("cancelled", 9), sentMs: 1, answeredMs: 2 }] },
    /is cancelled, and nobody asked/,
  ],
  "a task fails that may go on": [
    { ...good, reads: [{ view: view("failed", 9), sentMs: 1, answeredMs: 2 }] },
    /t failed/,
  ],
  "a result comes from nowhere": [{ ...good, sights: good.sights.slice(0, 3) }, /which no handler returned/],
};

describe("a run breaks a rule in which", () => {
  test.each(Object.entries(breaches))("%s", (_what, [history, told]) => {
    expect(checkHistory(history)).toContainEqual(expect.stringMatching(told));
  });
});
