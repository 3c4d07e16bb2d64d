/*
 * What must hold when processes die (P15, P19, P20, P27), for any store: a store's file says where it keeps its tasks, and
 * how many processes may use them at once.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { constantFrom, integer, record, sample, type Arbitrary } from "fast-check";
import { afterEach, describe, expect, test } from "vitest";

import { Fleet, type Answer } from "./fleet.ts";
import { killMoments, type KillPoint } from "./kill-point.ts";
import { mostProcesses, type StorePlace } from "./open-store.ts";
import { readWitness, type Sight } from "./witness.ts";

/** A place for the tasks of one test, and what removes it. */
export interface FreshPlace {
  readonly place: StorePlace;
  readonly remove: () => Promise<void>;
}

const kills = Number(process.env["LONGJOBS_KILLS"] ?? 20);
/** Of each moment, which is met; in a long run more of them. */
const occurrences = kills > 20 ? [1, 2, 3] : [1];
const leaseMs = 600;
const deadlineMs = 60_000;
const steps = 6;

/** Runs the scenarios on a store. */
export function recoveryScenarios(name: string, freshPlace: () => Promise<FreshPlace>): void {
  describe(`work on ${name} whose processes are killed`, () => {
    const cleanups: (() => Promise<void>)[] = [];

    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    });

    async function setUp(): Promise<{ fleet: Fleet; witness: string; most: number }> {
      const { place, remove } = await freshPlace();
      const dir = await mkdtemp(join(tmpdir(), "longjobs-fleet-"));
      const witness = join(dir, "witness");
      await writeFile(witness, "");
      const fleet = new Fleet({ place, witness, leaseMs });
      cleanups.push(
        () => rm(dir, { recursive: true }),
        remove,
        () => fleet.killAll(),
      );
      return { fleet, witness, most: mostProcesses[place.kind] };
    }

    test.for(killMoments.flatMap((at) => occurrences.map((nth) => ({ at, nth }))))(
      "at its moment $nth of '$at': what was accepted ends with its result, and no saved step is done again (P15)",
      { timeout: deadlineMs * 2 },
      async (kill) => {
        const { fleet, witness } = await setUp();
        const port = await fleet.start(kill);
        const asked = await fleet.send(port, "tools/call", { name: "count", arguments: { steps } });
        const accepted = taskIdOf(asked);
        // A moment that never comes kills nobody; the process is killed at the end like any other.
        if (accepted !== undefined) await untilEndedOrDead(fleet, port, accepted);
        await fleet.kill(port);

        await fleet.start(undefined, port);
        const created = readWitness(witness).find(({ did }) => did === "created")?.taskId;
        if (accepted !== undefined) expect(created).toBe(accepted);
        if (created !== undefined) {
          expect(await ended(fleet, port, created)).toMatchObject(counted);
          assertOrderly(readWitness(witness));
        }
      },
    );

    test(
      "at its handler: a tool that may not begin again is begun once, and its client is told (P20)",
      { timeout: deadlineMs },
      async () => {
        const { fleet, witness } = await setUp();
        const port = await fleet.start({ at: "step is done", nth: 2 });
        const asked = await fleet.send(port, "tools/call", { name: "count_once", arguments: { steps } });
        const taskId = taskIdOf(asked) ?? "";
        await fleet.ended(port);
        await fleet.start(undefined, port);
        const end = await ended(fleet, port, taskId);
        expect(end).toMatchObject({
          status: "failed",
          error: { data: { reason: "interrupted", checkpoint: 1 } },
        });
        expect(readWitness(witness).filter(({ did }) => did === "began")).toHaveLength(1);
      },
    );

    test(
      "while a person is asked, and right after the answer: one question, one answer (P27)",
      { timeout: deadlineMs },
      async () => {
        const { fleet, witness } = await setUp();
        const port = await fleet.start();
        const taskId = taskIdOf(await fleet.send(port, "tools/call", { name: "greet", arguments: {} })) ?? "";
        const first = await until(fleet, port, taskId, ({ status }) => status === "input_required");
        await fleet.kill(port);
        await fleet.start(undefined, port);
        const again = await until(fleet, port, taskId, ({ status }) => status === "input_required");
        expect(again["inputRequests"]).toEqual(first["inputRequests"]);
        const [key = ""] = Object.keys(again["inputRequests"] as object);
        const inputResponses = { [key]: { action: "accept", content: { answer: "Ada" } } };
        expect((await fleet.send(port, "tasks/update", { taskId, inputResponses }))?.error).toBeUndefined();
        await fleet.kill(port);
        await fleet.start(undefined, port);
        expect(await ended(fleet, port, taskId)).toMatchObject({
          status: "completed",
          result: { content: [{ text: "Hello, Ada!" }] },
        });
        const answers = readWitness(witness).flatMap(({ answer }) => answer ?? []);
        expect(new Set(answers)).toEqual(new Set(["Ada"]));
      },
    );

    test(
      `at ${kills} random moments while clients call: nothing accepted is lost, and nothing is done twice at once`,
      { timeout: deadlineMs + kills * 10_000 },
      async () => {
        const { fleet, witness, most } = await setUp();
        const seed = Number(process.env["LONGJOBS_SEED"] ?? Date.now() % 2 ** 31);
        const points = sample(randomKill, { seed, numRuns: kills });
        const said = `seed ${seed}`;
        const accepted: string[] = [];
        const processes = Math.min(most, 4);
        const ports: number[] = [];
        for (let started = 0; started < processes; started += 1) ports.push(await fleet.start(points.pop()));
        while (points.length > 0) {
          for (const port of ports) {
            if (!fleet.lives(port)) await fleet.start(points.pop(), port);
            const taskId = taskIdOf(
              await fleet.send(port, "tools/call", { name: "count", arguments: { steps } }),
            );
            if (taskId !== undefined) accepted.push(taskId);
            // A moment that does not come in time is helped: every process of the loop is killed.
            if (taskId !== undefined) await untilEndedOrDead(fleet, port, taskId, 2_000);
            if (accepted.length % 3 === 0) await fleet.kill(port);
          }
        }
        for (const port of ports) {
          await fleet.kill(port);
          await fleet.start(undefined, port);
        }
        const sights = readWitness(witness);
        const created = [
          ...new Set(sights.filter(({ did }) => did === "created").map(({ taskId }) => taskId)),
        ];
        expect(created, said).toEqual(expect.arrayContaining(accepted));
        const [port = 0] = ports;
        for (const taskId of created) expect(await ended(fleet, port, taskId), said).toMatchObject(counted);
        assertOrderly(readWitness(witness), said);
      },
    );
  });
}

const counted = { status: "completed", result: { content: [{ text: `Counted to ${steps}.` }] } };

const randomKill: Arbitrary<KillPoint> = record({
  at: constantFrom(...killMoments),
  nth: integer({ min: 1, max: 12 }),
});

/**
 * Of each task: attempts follow each other, and a step that was saved is never done again. A step whose saving nobody lived to
 * see may have been saved or not.
 */
function assertOrderly(sights: readonly Sight[], said = ""): void {
  const saved = new Map<string, number>();
  const stepped = new Map<string, number>();
  const attempts = new Map<string, number>();
  for (const { taskId, attempt, did, step = 0 } of sights) {
    if (did === "created") continue;
    const last = attempts.get(taskId) ?? 0;
    if (did === "began") {
      expect(attempt, `task ${taskId} is begun anew, ${said}`).toBeGreaterThan(last);
      attempts.set(taskId, attempt);
    } else expect(attempt, `task ${taskId} is worked on by its last attempt alone, ${said}`).toBe(last);
    if (did === "stepped") {
      const which = `task ${taskId}, attempt ${attempt}, ${said}`;
      expect(step, which).toBeGreaterThan(saved.get(taskId) ?? 0);
      expect(step, which).toBeLessThanOrEqual((stepped.get(taskId) ?? 0) + 1);
      stepped.set(taskId, step);
    }
    if (did === "saved") saved.set(taskId, step);
  }
}

type Task = { readonly status?: string; readonly [member: string]: unknown };

function taskIdOf(answer: Answer | undefined): string | undefined {
  return answer?.result?.["taskId"] as string | undefined;
}

/** Polls as a client does, and goes on when a process does not answer. */
async function until(
  fleet: Fleet,
  port: number,
  taskId: string,
  isIt: (task: Task) => boolean,
): Promise<Task> {
  const endMs = Date.now() + deadlineMs;
  let last: Answer | undefined;
  while (Date.now() < endMs) {
    last = await fleet.send(port, "tasks/get", { taskId });
    if (last?.error !== undefined) throw new Error(`Task ${taskId}: ${JSON.stringify(last.error)}`);
    if (last?.result !== undefined && isIt(last.result)) return last.result;
    if (!fleet.lives(port)) throw new Error(`The process on ${port} has ended.`);
    await nextPoll();
  }
  throw new Error(`Task ${taskId} did not come to it; it is ${JSON.stringify(last)}`);
}

function ended(fleet: Fleet, port: number, taskId: string): Promise<Task> {
  return until(fleet, port, taskId, ({ status }) => isEnd(status));
}

/** Resolves when the task has ended, or its process has, or the time is up. */
async function untilEndedOrDead(
  fleet: Fleet,
  port: number,
  taskId: string,
  timeoutMs = deadlineMs,
): Promise<void> {
  const endMs = Date.now() + timeoutMs;
  while (fleet.lives(port) && Date.now() < endMs) {
    const answer = await fleet.send(port, "tasks/get", { taskId });
    if (isEnd(answer?.result?.["status"] as string | undefined)) return;
    await nextPoll();
  }
}

function isEnd(status: string | undefined): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The polling interval that the server suggests. */
async function nextPoll(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
}
