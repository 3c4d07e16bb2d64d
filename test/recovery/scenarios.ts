/*
 * What must hold when processes die (P15, P19, P20, P27), for any store: a store's file says where it keeps its tasks, and
 * how many processes may use them at once. On a shared store the others live on, and it is one of them that goes on.
 */
import { constantFrom, integer, record, sample, type Arbitrary } from "fast-check";
import { afterEach, describe, expect, test } from "vitest";

import { assertOrderly } from "./assert-orderly.ts";
import {
  asking,
  deadlineMs,
  ended,
  giveAnswer,
  startTask,
  taskIdOf,
  untilEndedOrDead,
} from "./follow-task.ts";
import { killMoments, type KillPoint } from "./kill-point.ts";
import { Scenes, type FreshPlace } from "./scene.ts";
import { readWitness } from "./witness.ts";

const kills = Number(process.env["LONGJOBS_KILLS"] ?? 20);
/** Of each moment, which is met; in a long run more of them. */
const occurrences = kills > 20 ? [1, 2, 3] : [1];
const steps = 6;

/** Runs the scenarios on a store. */
export function recoveryScenarios(name: string, freshPlace: () => Promise<FreshPlace>): void {
  describe(`work on ${name} whose processes are killed`, () => {
    const scenes = new Scenes(freshPlace);
    afterEach(({ task }) => scenes.close(task.result?.state !== "fail"));

    test.for(killMoments.flatMap((at) => occurrences.map((nth) => ({ at, nth }))))(
      "at its moment $nth of '$at': what was accepted ends with its result, and no saved step is done again (P15)",
      { timeout: deadlineMs * 2 },
      async (kill) => {
        const { fleet, witness, startNeighbours, successor } = await scenes.setUp();
        const [port] = await Promise.all([fleet.start({ kill }), startNeighbours()]);
        const asked = await fleet.send(port, "tools/call", { name: "count", arguments: { steps } });
        const accepted = taskIdOf(asked);
        // A moment that never comes kills nobody; the process is killed at the end like any other.
        if (accepted !== undefined) await untilEndedOrDead(fleet, port, accepted);
        await fleet.kill(port);

        const next = await successor(port);
        const created = readWitness(witness).find(({ did }) => did === "created")?.taskId;
        if (accepted !== undefined) expect(created).toBe(accepted);
        if (created !== undefined) {
          expect(await ended(fleet, next, created)).toMatchObject(counted);
          assertOrderly(readWitness(witness));
        }
      },
    );

    test(
      "right after a claim: what was claimed is claimed again, and ends with its result (P15)",
      { timeout: deadlineMs },
      async () => {
        const { fleet, witness } = await scenes.setUp();
        const port = await fleet.start({ kill: { at: "step is done", nth: 2 } });
        const taskId = await startTask(fleet, port, "count", { steps });
        await fleet.ended(port);
        await fleet.start({ port, kill: { at: "claim is durable", nth: 1 } });
        expect(await fleet.ended(port)).toBe("SIGKILL");
        await fleet.start({ port });
        expect(await ended(fleet, port, taskId)).toMatchObject(counted);
        assertOrderly(readWitness(witness));
      },
    );

    test(
      "at its handler: a tool that may not begin again is begun once, and its client is told (P20)",
      { timeout: deadlineMs },
      async () => {
        const { fleet, witness, startNeighbours, successor } = await scenes.setUp();
        const kill = { at: "step is done", nth: 2 } as const;
        const [port] = await Promise.all([fleet.start({ kill }), startNeighbours()]);
        const taskId = await startTask(fleet, port, "count_once", { steps });
        await fleet.ended(port);
        const end = await ended(fleet, await successor(port), taskId);
        expect(end).toMatchObject({
          status: "failed",
          error: { data: { reason: "interrupted", checkpoint: { step: 1 } } },
        });
        expect(readWitness(witness).filter(({ did }) => did === "began")).toHaveLength(1);
      },
    );

    test(
      "while a person is asked, and right after the answer: one question, one answer (P27)",
      { timeout: deadlineMs },
      async () => {
        const { fleet, witness, startNeighbours, successor } = await scenes.setUp();
        const [port] = await Promise.all([fleet.start(), startNeighbours()]);
        const taskId = await startTask(fleet, port, "greet");
        const first = await asking(fleet, port, taskId);
        await fleet.kill(port);
        const second = await successor(port);
        const again = await asking(fleet, second, taskId);
        expect(again.task["inputRequests"]).toEqual(first.task["inputRequests"]);
        expect((await giveAnswer(fleet, second, taskId, [again.key, "Ada"]))?.error).toBeUndefined();
        await fleet.kill(second);
        expect(await ended(fleet, await successor(second), taskId)).toMatchObject({
          status: "completed",
          result: { content: [{ text: "Hello, Ada!" }] },
        });
        const answers = readWitness(witness).flatMap((sight) => sight.answer ?? []);
        expect(new Set(answers)).toEqual(new Set(["Ada"]));
      },
    );

    test(
      `at ${kills} random moments while clients call: nothing accepted is lost, and nothing is done twice at once`,
      { timeout: deadlineMs + kills * 10_000 },
      async () => {
        const { fleet, witness, most } = await scenes.setUp();
        const seed = Number(process.env["LONGJOBS_SEED"] ?? Date.now() % 2 ** 31);
        const points = sample(randomKill, { seed, numRuns: kills });
        const said = `seed ${seed}`;
        const accepted: string[] = [];
        const start = (port?: number): Promise<number> => {
          const kill = points.pop();
          return fleet.start({
            ...(port === undefined ? {} : { port }),
            ...(kill === undefined ? {} : { kill }),
          });
        };
        const ports = await Promise.all(Array.from({ length: most }, () => start()));
        const work = async (port: number): Promise<void> => {
          for (let calls = 1; points.length > 0; calls += 1) {
            if (!fleet.lives(port)) await start(port);
            const taskId = taskIdOf(
              await fleet.send(port, "tools/call", { name: "count", arguments: { steps } }),
            );
            if (taskId !== undefined) accepted.push(taskId);
            // A moment that does not come in time is helped: every process of the loop is killed.
            if (taskId !== undefined) await untilEndedOrDead(fleet, port, taskId, 2_000);
            if (calls % 3 === 0) await fleet.kill(port);
          }
        };
        await Promise.all(ports.map(work));
        await fleet.killAll();
        await Promise.all(ports.map((port) => fleet.start({ port })));
        const sights = readWitness(witness);
        const created = [
          ...new Set(sights.flatMap(({ did, taskId }) => (did === "created" ? (taskId ?? []) : []))),
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
