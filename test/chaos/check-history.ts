/*
 * What must hold of every run, however it was disturbed. Each rule returns what breaks it, in words; none of them knows what was
 * done to the servers.
 */
import { isTerminal } from "@longjobs/core";

import { byTask, type Read, type RunHistory, type Version } from "./history.ts";

/** Every breach of a rule. Empty when the promise was kept. */
export function checkHistory(history: RunHistory): string[] {
  return [
    ...history.refusals,
    ...nothingLost(history),
    ...readersAgree(history),
    ...everyWriteCounts(history),
    ...oneHolder(history),
    ...answersStand(history),
    ...runsDiffer(history),
    ...endsAreEarned(history),
  ];
}

/** What a run must have seen so that there was something for each rule to look at. Empty when all of it happened. */
export function neverHappened({ accepted, answers, reads, sights, versions }: RunHistory): string[] {
  const happened = {
    "A task was accepted.": accepted.length > 0,
    "Somebody was shown an end.": reads.some(({ view }) => isEnd(view.status)),
    "An answer was acknowledged.": answers.some(({ acknowledgedMs }) => acknowledgedMs !== undefined),
    "A handler got an answer.": sights.some(({ did }) => did === "got"),
    "A lease that had lapsed was taken.": versions.some(({ leaseLeftMs }) => leaseLeftMs !== undefined),
    "A later run saved.": versions.some(
      ({ checkpoint }) => checkpoint !== undefined && markOf(checkpoint.value).attempt > 1,
    ),
  };
  return Object.entries(happened).flatMap(([what, did]) => (did ? [] : [what]));
}

/** Every acknowledged create is in the backend and has come to an end that its client was shown. */
function* nothingLost({ accepted, reads, versions }: RunHistory): Generator<string> {
  const kept = byTask(versions);
  const shown = new Set(reads.filter(({ view }) => isEnd(view.status)).map(({ view }) => view.taskId));
  for (const { taskId } of accepted) {
    if (!kept.has(taskId)) yield `${taskId} was accepted, and the backend never had it.`;
    if (!shown.has(taskId)) yield `${taskId} was accepted, and nobody was shown its end.`;
  }
}

/** An end that was shown is shown to everybody from then on, the same; and no reader is taken back in time. */
function* readersAgree({ reads, versions }: RunHistory): Generator<string> {
  const kept = byTask(versions);
  for (const [taskId, seen] of byTask(reads.map((read) => ({ taskId: read.view.taskId, ...read })))) {
    const ends = seen.filter(({ view }) => isEnd(view.status));
    const [first] = ends;
    for (const { view } of ends)
      if (JSON.stringify(view) !== JSON.stringify(first?.view))
        yield `${taskId} ended as ${JSON.stringify(first?.view)} and as ${JSON.stringify(view)}.`;
    const last = kept.get(taskId)?.at(-1);
    if (first !== undefined && last !== undefined && first.view.status !== last.status)
      yield `${taskId} was shown as ${first.view.status}, and the backend has it as ${last.status}.`;
    yield* takenBack(taskId, seen);
  }
}

function* takenBack(taskId: string, seen: readonly Read[]): Generator<string> {
  const answered = seen.toSorted((left, right) => left.answeredMs - right.answeredMs);
  let next = 0;
  let latest = "";
  let hasEnded = false;
  for (const { sentMs, view } of seen.toSorted((left, right) => left.sentMs - right.sentMs)) {
    for (
      let earlier = answered[next];
      earlier !== undefined && earlier.answeredMs < sentMs;
      earlier = answered[next]
    ) {
      if (earlier.view.lastUpdatedAt > latest) latest = earlier.view.lastUpdatedAt;
      hasEnded ||= isEnd(earlier.view.status);
      next += 1;
    }
    if (view.lastUpdatedAt < latest)
      yield `${taskId} was shown as of ${latest}, then as of ${view.lastUpdatedAt}.`;
    if (hasEnded && !isEnd(view.status)) yield `${taskId} had ended, and was shown as ${view.status}.`;
  }
}

/** Each write adds one to the version, nothing is written after the end, and no checkpoint goes back. */
function* everyWriteCounts({ versions }: RunHistory): Generator<string> {
  for (const [taskId, kept] of byTask(versions)) {
    for (const [before, after] of pairs(kept)) {
      if (after.version !== before.version + 1)
        yield `${taskId} went from version ${before.version} to ${after.version}.`;
      if (isTerminal(before.status))
        yield `${taskId} was ${before.status} and written again, as ${after.status}.`;
      if (!isTerminal(after.status) && stepOf(after) < stepOf(before))
        yield `${taskId} had saved step ${stepOf(before)}, then step ${stepOf(after)}.`;
    }
  }
}

/**
 * P17: a lease is taken when it has lapsed or was given back, a run begins under a lease, what is saved is saved by the run that
 * holds it, and the end is written under the last token.
 */
function* oneHolder({ versions }: RunHistory): Generator<string> {
  for (const [taskId, kept] of byTask(versions)) {
    for (const [before, after] of pairs(kept)) {
      const where = `${taskId}, version ${after.version}:`;
      if ((after.leaseLeftMs ?? 0) > 0)
        yield `${where} its lease was taken ${after.leaseLeftMs} ms before its end.`;
      if (after.attempt !== before.attempt && after.attempt !== before.attempt + 1)
        yield `${where} run ${before.attempt} was followed by ${after.attempt}.`;
      if (after.attempt !== before.attempt && before.lease === undefined)
        yield `${where} run ${after.attempt} was begun without a lease.`;
      for (const mark of newMarks(before, after))
        if (mark.owner !== before.lease?.owner || mark.attempt !== before.attempt)
          yield `${where} run ${mark.attempt} of ${mark.owner} wrote while run ${before.attempt} of ${before.lease?.owner} held it.`;
      if (isTerminal(after.status) && after.finishedBy !== before.lease?.token)
        yield `${where} ended under ${after.finishedBy}, and ${before.lease?.token} held it.`;
    }
  }
}

/** Which run a value says that it was written by. */
export interface Mark {
  readonly owner: string;
  readonly attempt: number;
}

/** The marks of the values that a write has changed. */
function newMarks(before: Version, after: Version): Mark[] {
  const marks: Mark[] = [];
  if (
    after.checkpoint !== undefined &&
    JSON.stringify(after.checkpoint) !== JSON.stringify(before.checkpoint)
  )
    marks.push(markOf(after.checkpoint.value));
  const message = after.progress?.message;
  if (message !== undefined && message !== before.progress?.message) marks.push(JSON.parse(message) as Mark);
  return marks;
}

function markOf(value: unknown): Mark {
  return (value as { readonly mark: Mark }).mark;
}

function stepOf({ checkpoint }: Version): number {
  return (checkpoint?.value as { readonly step?: number } | undefined)?.step ?? 0;
}

/**
 * A question has one answer, which is one that was sent; one that was acknowledged before any other was sent is that one.
 * Handlers get it, by each way at most once per run.
 */
function* answersStand({ answers, cancelled, sights, versions }: RunHistory): Generator<string> {
  const given = byTask(answers);
  const kept = byTask(versions);
  const seen = byTask(sights.filter(({ did }) => did === "got"));
  for (const [taskId, states] of kept) {
    const stored = new Map<string, string>();
    for (const { inputs, version } of states) {
      for (const [key, { answer, state }] of Object.entries(inputs ?? {})) {
        if (state !== "answered") continue;
        const value = String((answer?.["content"] as { readonly answer?: unknown } | undefined)?.answer);
        const first = stored.get(key);
        if (first !== undefined && first !== value)
          yield `${taskId}, version ${version}: ${key} was answered with ${first}, then with ${value}.`;
        stored.set(key, first ?? value);
      }
    }
    for (const [key, value] of stored) {
      const rivals = (given.get(taskId) ?? []).filter((answer) => answer.key === key);
      if (!rivals.some((rival) => rival.value === value))
        yield `${taskId}: nobody answered ${key} with ${value}.`;
      for (const rival of rivals)
        if (
          rival.value !== value &&
          isFirst(
            rival.acknowledgedMs,
            rivals.filter((other) => other !== rival),
          )
        )
          yield `${taskId}: ${rival.value} was acknowledged for ${key} before ${value} was sent.`;
    }
    for (const { acknowledgedMs, key, value } of given.get(taskId) ?? [])
      if (acknowledgedMs !== undefined && !stored.has(key) && !cancelled.has(taskId))
        yield `${taskId}: ${value} was acknowledged for ${key}, and the backend never had it.`;
    yield* delivered(taskId, seen.get(taskId) ?? [], stored);
  }
}

/** True when an answer was acknowledged before every other one of its question was sent. */
function isFirst(
  acknowledgedMs: number | undefined,
  others: readonly { readonly sentMs: number }[],
): boolean {
  return acknowledgedMs !== undefined && others.every(({ sentMs }) => sentMs > acknowledgedMs);
}

function* delivered(
  taskId: string,
  sights: RunHistory["sights"],
  stored: ReadonlyMap<string, string>,
): Generator<string> {
  const times = new Map<string, number>();
  for (const { answer = "", attempt, by = "", key = "" } of sights) {
    // A question of `ask` has a key that only the engine knows.
    const answered = key === "" ? [...stored.values()] : [stored.get(key)];
    if (!answered.includes(answer))
      yield `${taskId}: run ${attempt} got ${answer} for ${key}, and ${answered.join()} was given.`;
    const way = JSON.stringify([attempt, by, key]);
    const count = (times.get(way) ?? 0) + 1;
    times.set(way, count);
    if (count > 1) yield `${taskId}: run ${attempt} got the answer to ${key} ${count} times by ${by}.`;
  }
}

/** No two runs of a task have the same number, and one that may not begin again begins once. */
function* runsDiffer({ accepted, sights }: RunHistory): Generator<string> {
  const tools = new Map(accepted.map(({ taskId, tool }) => [taskId, tool]));
  for (const [taskId, seen] of byTask(sights.filter(({ did }) => did === "began"))) {
    const runs = seen.map(({ attempt }) => attempt);
    if (new Set(runs).size !== runs.length) yield `${taskId} was begun as ${runs.join()}.`;
    if (tools.get(taskId) === "once" && runs.length > 1)
      yield `${taskId} may begin once, and was begun as ${runs.join()}.`;
  }
}

/** Nothing is cancelled that nobody cancelled, nothing fails but what was interrupted, and a result is what its task came to. */
function* endsAreEarned({ accepted, cancelled, reads, sights }: RunHistory): Generator<string> {
  const tools = new Map(accepted.map(({ taskId, tool }) => [taskId, tool]));
  const returned = byTask(sights.filter(({ did }) => did === "returned"));
  const checked = new Set<string>();
  for (const { view } of reads) {
    const { taskId, status } = view;
    if (!isEnd(status) || checked.has(taskId)) continue;
    checked.add(taskId);
    if (status === "cancelled" && !cancelled.has(taskId))
      yield `${taskId} is cancelled, and nobody asked for it.`;
    const { reason } = (view.error?.data ?? {}) as { readonly reason?: string };
    if (status === "failed" && !(tools.get(taskId) === "once" && reason === "interrupted"))
      yield `${taskId} failed: ${JSON.stringify(view.error)}.`;
    const text = view.result?.content?.[0]?.text;
    if (status === "completed" && !(returned.get(taskId) ?? []).some(({ answer }) => answer === text))
      yield `${taskId} has the result ${JSON.stringify(view.result)}, which no handler returned.`;
  }
}

function isEnd(status: string): boolean {
  return isTerminal(status as Parameters<typeof isTerminal>[0]);
}

function pairs<Of>(entries: readonly Of[]): [Of, Of][] {
  return entries.slice(1).map((entry, index) => [entries[index] as Of, entry]);
}
