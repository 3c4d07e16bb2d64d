/*
 * What must hold on a shared store when a process is cut off from the others by sleep or death, and they go on: it writes
 * nothing any more (P17), and a call that it took with a key is repeated elsewhere without a second task (P02).
 */
import { afterEach, describe, expect, test } from "vitest";

import { assertOrderly } from "./assert-orderly.ts";
import { asking, deadlineMs, ended, giveAnswer, startTask, taskIdOf } from "./follow-task.ts";
import type { KillPoint } from "./kill-point.ts";
import { Scenes, type FreshPlace } from "./scene.ts";
import { readWitness, untilSeen } from "./witness.ts";

const steps = 6;
const counted = { status: "completed", result: { content: [{ text: `Counted to ${steps}.` }] } };

/** Before the engine has read the record, between its read and its write, and before the last write. */
const sleeps = ["step is done", "update begins", "completion begins"] as const;

/** Runs the scenarios on a store that processes share. */
export function fencingScenarios(name: string, freshPlace: () => Promise<FreshPlace>): void {
  describe(`a process on ${name} that others take for dead`, { timeout: deadlineMs }, () => {
    const scenes = new Scenes(freshPlace);
    afterEach(({ task }) => scenes.close(task.result?.state !== "fail"));

    test.for(sleeps)(
      "and that wakes up where '%s' writes nothing, and its handler is told that the lease is lost (P17)",
      async (at) => {
        const { fleet, witness, startNeighbours } = await scenes.setUp();
        const kill: KillPoint = { at, nth: 1, signal: "SIGSTOP" };
        const [sleeper, [neighbour = 0]] = await Promise.all([fleet.start({ kill }), startNeighbours()]);
        const taskId = await startTask(fleet, sleeper, "count", { steps, asks: true });
        await untilSeen(witness, "the process sleeps", (sights) =>
          sights.some(({ did }) => did === "stopped"),
        );
        // The next attempt is at work while the sleeper wakes up, and the store says so by its lease alone.
        const { key } = await asking(fleet, neighbour, taskId);
        fleet.resume(sleeper);
        const sleeperPid = fleet.pid(sleeper);
        await untilSeen(witness, "the handler of the sleeper is told", (sights) =>
          sights.some(
            ({ did, pid, taskId: of, reason }) =>
              did === "aborted" && pid === sleeperPid && of === taskId && reason === "lease_lost",
          ),
        );
        expect((await asking(fleet, neighbour, taskId)).key).toBe(key);
        // Through the process that slept: it answers for everything, its own attempt aside.
        await giveAnswer(fleet, sleeper, taskId, [key, "yes"]);
        expect(await ended(fleet, sleeper, taskId)).toMatchObject(counted);
        assertOrderly(readWitness(witness));
      },
    );

    test("and that wakes up after it has claimed a task begins nothing: another has claimed it anew (P17)", async () => {
      const { fleet, witness, startNeighbours } = await scenes.setUp();
      const first = await fleet.start({ kill: { at: "step is done", nth: 2 } });
      const taskId = await startTask(fleet, first, "count", { steps, asks: true });
      await fleet.ended(first);
      const sleeper = await fleet.start({ kill: { at: "claim is durable", nth: 1, signal: "SIGSTOP" } });
      await untilSeen(witness, "the process sleeps", (sights) => sights.some(({ did }) => did === "stopped"));
      const [neighbour = 0] = await startNeighbours();
      const { key } = await asking(fleet, neighbour, taskId);
      fleet.resume(sleeper);
      const looks = (): number =>
        readWitness(witness).filter(({ did, pid }) => did === "looked" && pid === fleet.pid(sleeper)).length;
      const before = looks();
      // It would begin what it has claimed before it looks for more.
      await untilSeen(witness, "the sleeper looks for work again", () => looks() > before + 2);
      await giveAnswer(fleet, sleeper, taskId, [key, "yes"]);
      expect(await ended(fleet, sleeper, taskId)).toMatchObject(counted);
      assertOrderly(readWitness(witness));
    });

    test("because it died at a call with a key: the call is repeated elsewhere, and is one task (P02)", async () => {
      const { fleet, witness, startNeighbours } = await scenes.setUp();
      const [neighbour = 0, other = 0] = await startNeighbours();
      for (const at of ["create begins", "create is durable", "handler begins"] as const) {
        const victim = await fleet.start({ kill: { at, nth: 1 } });
        const call = { name: "count", arguments: { steps } };
        const key = { "longjobs/idempotencyKey": `cut off at '${at}'` };
        expect(await fleet.send(victim, "tools/call", call, key)).toBeUndefined();
        expect(await fleet.ended(victim)).toBe("SIGKILL");
        const repeated = taskIdOf(await fleet.send(neighbour, "tools/call", call, key)) ?? "";
        expect(await ended(fleet, other, repeated), at).toMatchObject(counted);
        const created = readWitness(witness, repeated).filter(({ did }) => did === "created");
        expect(created, at).toHaveLength(1);
      }
      const tasks = new Set(
        readWitness(witness).flatMap(({ did, taskId }) => (did === "created" ? taskId : [])),
      );
      expect(tasks.size).toBe(3);
      assertOrderly(readWitness(witness));
    });
  });
}
