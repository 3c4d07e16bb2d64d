/*
 * What must hold on a shared store while no process dies: whichever process is asked, it answers for work that runs in
 * another (P02, P03, P16).
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { assertOrderly } from "./assert-orderly.ts";
import { asking, deadlineMs, ended, giveAnswer, startTask, taskIdOf } from "./follow-task.ts";
import { Scenes, type FreshPlace, type Scene } from "./scene.ts";
import { readWitness, untilSeen } from "./witness.ts";

/** No process of these scenarios dies: on a busy machine its lease must not lapse either. */
const leaseMs = 60_000;
const idempotencyKey = "longjobs/idempotencyKey";

/** Runs the scenarios on a store that processes share. */
export function anyProcessScenarios(name: string, freshPlace: () => Promise<FreshPlace>): void {
  describe(`any process of four on ${name}`, { timeout: deadlineMs }, () => {
    const scenes = new Scenes(freshPlace);
    let failed = false;
    let scene: Scene;
    let worker: number;
    let others: [number, number, number];

    beforeAll(async () => {
      scene = await scenes.setUp();
      const [first, rest] = await Promise.all([
        scene.fleet.start({ leaseMs }),
        scene.startNeighbours({ leaseMs }),
      ]);
      worker = first;
      others = rest as [number, number, number];
    });

    afterEach(({ task }) => {
      failed ||= task.result?.state === "fail";
    });

    afterAll(() => scenes.close(!failed));

    test("tells of a question, takes its answer, and tells of the end", async () => {
      const { fleet, witness } = scene;
      const taskId = await startTask(fleet, worker, "greet");
      const { key } = await asking(fleet, others[0], taskId);
      expect((await giveAnswer(fleet, others[1], taskId, [key, "Ada"]))?.error).toBeUndefined();
      expect(await ended(fleet, others[2], taskId)).toMatchObject({
        status: "completed",
        result: { content: [{ text: "Hello, Ada!" }] },
      });
      const returned = readWitness(witness, taskId).filter(({ did }) => did === "returned");
      expect(returned).toMatchObject([{ pid: fleet.pid(worker), attempt: 1, answer: "Ada" }]);
    });

    test("cancels: the signal of the handler is aborted in its process, and the task is cancelled", async () => {
      const { fleet, witness } = scene;
      const taskId = await startTask(fleet, worker, "linger");
      expect((await fleet.send(others[0], "tasks/cancel", { taskId }))?.error).toBeUndefined();
      expect(await ended(fleet, others[1], taskId)).toMatchObject({ status: "cancelled" });
      const aborted = readWitness(witness, taskId).filter(({ did }) => did === "aborted");
      expect(aborted).toMatchObject([{ pid: fleet.pid(worker), reason: "cancelled" }]);
    });

    test("waits in durable_task_get for the end of a task that another runs", async () => {
      const { fleet } = scene;
      const taskId = await startTask(fleet, worker, "greet");
      const { key } = await asking(fleet, worker, taskId);
      const noTasks = { "io.modelcontextprotocol/clientCapabilities": {} };
      const wait = { name: "durable_task_get", arguments: { taskId, waitSeconds: 25 } };
      // A question is an answer to this wait; the second wait begins when the question is answered.
      expect((await fleet.send(others[0], "tools/call", wait, noTasks))?.result).toMatchObject({
        structuredContent: { status: "input_required" },
      });
      await giveAnswer(fleet, others[2], taskId, [key, "Grace"]);
      expect((await fleet.send(others[1], "tools/call", wait, noTasks))?.result).toMatchObject({
        content: [{ text: "Hello, Grace!" }],
      });
    });

    test("takes a call with a key: 50 at once over all processes are one task and one run (P03)", async () => {
      const { fleet, witness } = scene;
      const ports = [worker, ...others];
      const calls = Array.from({ length: 50 }, (_, index) =>
        fleet.send(
          ports[index % ports.length] ?? worker,
          "tools/call",
          { name: "greet", arguments: {} },
          { [idempotencyKey]: "fifty at once" },
        ),
      );
      const ids = new Set((await Promise.all(calls)).map(taskIdOf));
      const [taskId = ""] = ids;
      expect([...ids]).toEqual([taskId]);
      const { key } = await asking(fleet, others[0], taskId);
      await giveAnswer(fleet, others[1], taskId, [key, "Alan"]);
      await ended(fleet, others[2], taskId);
      const sights = readWitness(witness, taskId);
      expect(sights.filter(({ did }) => did === "created")).toHaveLength(1);
      expect(sights.filter(({ did }) => did === "began")).toHaveLength(1);
    });

    test("leaves work alone whose lease is alive, with a clock five minutes ahead or behind (P16)", async () => {
      const { fleet, witness } = scene;
      const taskId = await startTask(fleet, worker, "linger");
      // Their own leases are short, so that they look for work that was left behind every 200 ms.
      const skewed = await Promise.all(
        [300_000, -300_000].map((clockSkewMs) => fleet.start({ clockSkewMs, leaseMs: 600 })),
      );
      const pids = skewed.map((port) => fleet.pid(port));
      await untilSeen(witness, "the new processes look for work", (sights) =>
        pids.every((pid) => sights.filter((sight) => sight.did === "looked" && sight.pid === pid).length > 8),
      );
      for (const port of skewed)
        expect((await fleet.send(port, "tasks/get", { taskId }))?.result).toMatchObject({
          status: "working",
        });
      expect(readWitness(witness, taskId).filter(({ write }) => write?.heldBy !== undefined)).toHaveLength(1);
      for (const port of skewed) await fleet.send(port, "tasks/cancel", { taskId });
      expect(await ended(fleet, others[0], taskId)).toMatchObject({ status: "cancelled" });
      expect(readWitness(witness, taskId).filter(({ did }) => did === "aborted")).toMatchObject([
        { pid: fleet.pid(worker), reason: "cancelled" },
      ]);
      await Promise.all(skewed.map((port) => fleet.kill(port)));
      assertOrderly(readWitness(witness));
    });
  });
}
