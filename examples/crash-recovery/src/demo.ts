/*
 * Four tasks meet four crashes. Every step is printed and asserted; the exit code is not 0 when one differs.
 *
 * A report is finished when its server is killed: its result is there afterwards. A crawl is killed in the middle: the next
 * process goes on at the next page. A report that must not be built twice is killed at work: its client is told so. A
 * question is open when its server is killed, the answer goes to the next process, which is killed as well: the work goes on
 * with that answer.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SerializedTaskReference } from "@modelcontextprotocol/ext-tasks/client";
import { ServerProcess } from "./server-process.ts";
import { Site } from "./site.ts";
import { openSession } from "./task-client.ts";

let step = 0;
let crashes = 0;
const pages = 10;
const dir = await mkdtemp(join(tmpdir(), "longjobs-demo-"));
const site = new Site();
await site.open();
const noQuestion = (message: string): never => assert.fail(`Nobody should be asked: ${message}`);

let server = await ServerProcess.start(dir);
try {
  say(`The server runs as process ${server.pid} and keeps its tasks in ${dir}.`);

  const report = await startTask("build_report", { topic: "tides" });
  say(`A report was accepted as task ${report.id}; it takes about three seconds.`);
  await server.waitFor(({ taskId, status }) => taskId === report.id && status === "completed");
  await crash("right after the report was finished, before anybody asked for its result");
  const first = await resume(report.reference, noQuestion);
  const text = textOf((await first.settle()).outcome);
  assert.equal(text, "The report on tides has 6 sections.");
  say(`A new client asked for it: "${text}"`);

  const crawl = await startTask("crawl_site", { url: site.url, pages });
  say(`A crawl of ${pages} pages is task ${crawl.id}.`);
  await server.waitFor(({ taskId, statusMessage }) => taskId === crawl.id && /4/.test(statusMessage ?? ""));
  await crash("in the middle of the crawl");
  const counted = textOf((await (await resume(crawl.reference, noQuestion)).settle()).outcome);
  assert.equal(counted, "10 pages, 105 words.");
  const again = [...site.fetches].filter(([, fetches]) => fetches > 1).map(([page]) => page);
  assert.deepEqual(
    [...site.fetches.keys()].toSorted((left, right) => left - right),
    range(1, pages),
  );
  assert.ok(again.length <= 1, "Only the page that was being read may have been read again.");
  say(`The next process went on with it: "${counted}" Pages fetched twice: ${again.join() || "none"}.`);

  const second = await startTask("crawl_site", { url: site.url, pages });
  await server.waitFor(({ taskId, statusMessage }) => taskId === second.id && /4/.test(statusMessage ?? ""));
  const { pid, port } = server;
  assert.equal(await server.stop(), 0);
  server = await ServerProcess.start(dir, port);
  assert.equal(textOf((await (await resume(second.reference, noQuestion)).settle()).outcome), counted);
  say(
    `Told to end in the middle of another crawl, process ${pid} gave it back, and process ${server.pid} finished it.`,
  );

  const lost = await startTask("build_report", { topic: "dunes" });
  const atWork = await server.waitFor(
    ({ taskId, statusMessage }) => taskId === lost.id && statusMessage !== undefined,
  );
  say(`Another report, which may not be begun twice, is task ${lost.id}, at "${atWork.statusMessage}".`);
  await crash("while it was at work");
  const failure = await failureOf(lost.reference, noQuestion);
  assert.equal(failure.data?.reason, "interrupted");
  assert.equal(failure.data.retryable, true);
  say(`Its client is told: "${failure.message}" And what to do: "${failure.data.recoveryHint}"`);

  const publication = await startTask("publish_report", {});
  await server.waitFor(({ taskId, status }) => taskId === publication.id && status === "input_required");
  say(`A publication is task ${publication.id}; it waits for a person.`);
  await crash("while it was waiting");
  const answered = new Set<string>();
  const waiting = await resume(publication.reference, (message) => {
    answered.add(message);
    return { action: "accept", content: { answer: "the notice board" } };
  });
  // This client dies with the server; what it would have got is not waited for.
  const settling = waiting.settle().catch(() => undefined);
  await server.waitFor(({ taskId, status }) => taskId === publication.id && status === "working");
  assert.deepEqual([...answered], ["Where shall the report be published?"]);
  say(`The next process asked "${[...answered].join()}" and took the answer "the notice board".`);
  await crash("right after it took the answer");
  await settling;
  const published = textOf((await (await resume(publication.reference, noQuestion)).settle()).outcome);
  assert.equal(published, "Published on the notice board.");
  assert.equal(answered.size, 1);
  say(`The work went on with that answer, and nobody was asked again: "${published}"`);
} finally {
  await server.kill();
  site.close();
}
await rm(dir, { recursive: true });
console.log(`\n${crashes} crashes: no result, no work and no answer was lost.`);

async function startTask(
  tool: string,
  args: { readonly [name: string]: string | number },
): Promise<{ id: string; reference: SerializedTaskReference }> {
  const session = await openSession(server.url, noQuestion);
  const execution = await session.callTool(tool, args);
  assert.ok(execution.kind === "task", `${tool} should have become a task.`);
  const reference = execution.serializeReference();
  // Detached, and its session is not closed: closing it would cancel the task.
  await execution.detach();
  return { id: reference.taskId, reference };
}

async function resume(reference: SerializedTaskReference, answer: (message: string) => object) {
  return (await openSession(server.url, answer)).resumeTask(reference);
}

async function crash(when: string): Promise<void> {
  crashes += 1;
  const { pid, port } = server;
  await server.kill();
  server = await ServerProcess.start(dir, port);
  say(`kill -9 ${pid} ${when}. The new server is process ${server.pid}.`);
}

async function failureOf(
  reference: SerializedTaskReference,
  answer: (message: string) => object,
): Promise<TaskFailure> {
  const { outcome } = await (await resume(reference, answer)).settle();
  assert.ok(outcome.status === "failed", `The task should have failed, not ${outcome.status}.`);
  return outcome.error as TaskFailure;
}

interface TaskFailure {
  readonly message: string;
  readonly data?: { readonly reason: string; readonly retryable: boolean; readonly recoveryHint: string };
}

function textOf(outcome: unknown): string | undefined {
  return (outcome as { result?: { content?: { text?: string }[] } }).result?.content?.[0]?.text;
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function say(words: string): void {
  step += 1;
  console.log(`${String(step).padStart(2)}. ${words}`);
}
