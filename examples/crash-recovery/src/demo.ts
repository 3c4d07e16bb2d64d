/*
 * Three tasks meet three crashes. Every step is printed and asserted; the exit code is not 0 when one differs.
 *
 * The first task is finished when its server is killed: its result is there afterwards. The second is at work: the
 * new server says honestly that it was interrupted. The third waits for a person: the answer goes to the new
 * server, which is killed too, and the answer is still in the log.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WalTaskStore } from "@longjobs/store-wal";
import type { SerializedTaskReference } from "@modelcontextprotocol/ext-tasks/client";
import { ServerProcess } from "./server-process.ts";
import { openSession } from "./task-client.ts";

let step = 0;
const dir = await mkdtemp(join(tmpdir(), "longjobs-demo-"));
const noQuestion = (message: string): never => assert.fail(`Nobody should be asked: ${message}`);

let server = await ServerProcess.start(dir);
try {
  say(`The server runs as process ${server.pid} and keeps its tasks in ${dir}.`);

  const first = await startTask("build_report", { topic: "tides" });
  say(`The first tool call was accepted as task ${first.id}; it takes about three seconds.`);
  await server.waitFor(({ taskId, status }) => taskId === first.id && status === "completed");
  await crash("right after the first task was finished, before anybody asked for its result");

  const second = await startTask("build_report", { topic: "dunes" });
  const atWork = await server.waitFor(
    ({ taskId, statusMessage }) => taskId === second.id && statusMessage !== undefined,
  );
  say(`The second tool call is task ${second.id}, at "${atWork.statusMessage}".`);
  await crash("while the second task was at work");

  const third = await startTask("publish_report", {});
  await server.waitFor(({ taskId, status }) => taskId === third.id && status === "input_required");
  say(`The third tool call is task ${third.id}; it waits for an answer.`);
  await crash("while the third task was waiting for a person");

  const execution = await resume(first.reference, noQuestion);
  const text = textOf((await execution.settle()).outcome);
  assert.equal(text, "The report on tides has 6 sections.");
  say(`A new client asked for the first task. Its result: "${text}"`);

  const failure = await failureOf(second.reference, noQuestion);
  assert.equal(failure.data?.reason, "interrupted");
  assert.equal(failure.data.retryable, true);
  say(`It asked for the second task. "${failure.message}" What to do: "${failure.data.recoveryHint}"`);

  let question = "";
  const afterAnswer = await failureOf(third.reference, (message) => {
    question = message;
    return { action: "accept", content: { place: "the notice board" } };
  });
  assert.equal(question, "Where shall the report be published?");
  assert.equal(afterAnswer.data?.reason, "interrupted");
  say(`The third task still asked "${question}" and took the answer "the notice board".`);
  await server.kill();
  say("The server was killed once more.");

  await using store = await WalTaskStore.open({ dir });
  const record = await store.get(third.id);
  assert.deepEqual(record?.inputs?.["where"]?.answer, {
    action: "accept",
    content: { place: "the notice board" },
  });
  say(`The log still has the answer: ${JSON.stringify(record.inputs["where"].answer)}`);
} finally {
  await server.kill();
}
await rm(dir, { recursive: true });
console.log("\nThree crashes: no result, no task and no answer was lost.");

async function startTask(
  tool: string,
  args: { readonly [name: string]: string },
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

function say(words: string): void {
  step += 1;
  console.log(`${String(step).padStart(2)}. ${words}`);
}
