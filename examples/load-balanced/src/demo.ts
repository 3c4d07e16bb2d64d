/*
 * Three instances behind a load balancer, and clients that know nothing of them. Every two seconds an instance is killed and
 * started again. Every task must end, with the answer that its own client gave. `--store redis|postgres`, `--tasks 300`.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { forgetPlace } from "./forget-place.ts";
import { InstanceProcess } from "./instance-process.ts";
import { placeFromEnv } from "./open-store.ts";
import { PatientClient, type Task } from "./patient-client.ts";
import { RoundRobinProxy } from "./proxy.ts";
import { receipts, settleExpense, type Expense } from "./settle-expense.ts";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "redis" },
    tasks: { type: "string", default: "300" },
  },
});
if (values.store !== "redis" && values.store !== "postgres") throw new Error("--store is redis or postgres.");
const count = Number(values.tasks);
if (!Number.isSafeInteger(count) || count < 1) throw new Error("--tasks is a positive number.");
const atOnce = 60;
const leaseMs = 2_000;
const killEveryMs = 2_000;

const place = placeFromEnv({
  ...process.env,
  STORE: values.store,
  STORE_NAME: `fleet_${process.pid}_${Date.now()}`,
});
const env = { STORE: place.kind, STORE_NAME: place.name, LEASE_MS: String(leaseMs) };
const instances = Array.from({ length: 3 }, () => new InstanceProcess(env));
const clients: PatientClient[] = [];
let step = 0;
let kills = 0;

try {
  await Promise.all(instances.map((instance) => instance.start()));
  const proxy = new RoundRobinProxy(instances.map(({ port }) => port));
  const url = await proxy.open();
  say(
    `Instances ${instances.map(({ pid }) => pid).join(", ")} share their tasks in ${place.kind}, behind ${url}.`,
  );

  const done = new AbortController();
  const killing = killInTurn(done.signal);
  const startMs = performance.now();
  const tasks = await settleAll(url);
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  done.abort();
  await killing;
  proxy.close();
  say(`${count} expenses were settled in ${seconds} s, at most ${atOnce} at a time.`);
  assert.ok(kills > 0, "No instance was killed: there were too few tasks.");
  say(`An instance was killed every ${killEveryMs / 1_000} s, ${kills} times in all.`);

  for (const [number, task] of tasks.entries()) {
    assert.equal(task.status, "completed", `Expense ${number}: ${JSON.stringify(task)}`);
    assert.equal(task.result?.content[0]?.text, textOf({ number, approver: approverOf(number) }));
  }
  const moved = tasks.filter(({ result }) => Number(result?.structuredContent["attempt"]) > 1).length;
  assert.equal(new Set(tasks.map(({ taskId }) => taskId)).size, count);
  say(`${moved} of them changed their instance in the middle, and went on at the next receipt.`);
  say(
    `${sum(clients.map(({ repeats }) => repeats))} requests met an instance that was gone, and were repeated.`,
  );
  say(`Each instance answered for all: ${[...proxy.answered.values()].join(", ")} requests.`);
} catch (error) {
  for (const { log, pid } of instances) console.error(`Instance ${pid} has reported:\n${log}`);
  throw error;
} finally {
  await Promise.all(instances.map((instance) => instance.kill()));
}
await forgetPlace(place);
console.log(`\n${kills} kills, ${count} tasks: none lost, none answered wrongly, all finished.`);

/** Settles all expenses, so many at a time, each client on its own. */
async function settleAll(url: string): Promise<Task[]> {
  const tasks: Task[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    const client = new PatientClient(url);
    clients.push(client);
    while (next < count) {
      const number = next;
      next += 1;
      tasks[number] = await settleExpense(client, { number, approver: approverOf(number) });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return tasks;
}

/** Every two seconds the next instance is killed, and started again at once. One at least is left to answer. */
async function killInTurn(signal: AbortSignal): Promise<void> {
  const starting: Promise<void>[] = [];
  for (let turn = 0; await passes(killEveryMs, signal); turn += 1) {
    const doomed = instances[turn % instances.length];
    const others = instances.filter((instance) => instance !== doomed && instance.listens);
    if (doomed?.listens !== true || others.length === 0) continue;
    await doomed.kill();
    kills += 1;
    const started = doomed.start();
    // Told of at the end, after the instances have been ended.
    started.catch(() => undefined);
    starting.push(started);
  }
  await Promise.all(starting);
}

/** False when the signal was aborted first. */
async function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal }).catch(() => false);
}

function approverOf(number: number): string {
  return `approver ${number}`;
}

function textOf({ number, approver }: Expense): string {
  return `Expense ${number}: ${receipts} receipts, approved by ${approver}.`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function say(words: string): void {
  step += 1;
  console.log(`${step}. ${words}`);
}
