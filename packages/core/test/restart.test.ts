import { expect, test } from "vitest";

import { isTerminal, MemoryTaskStore, type TaskHandle } from "../src/index.ts";
import { startEngine, takeErrors } from "./support/engine.ts";
import { codeOf } from "./support/errors.ts";
import { accepted, question } from "./support/questions.ts";
import { nextTurn } from "./support/turns.ts";

/** Work in three steps with a question in the middle, which starts again from its checkpoint. */
async function resumable(task: TaskHandle): Promise<{ readonly steps: number; readonly answer: string }> {
  let step = (task.checkpoint as number | undefined) ?? 0;
  while (step < 3) {
    await nextTurn();
    task.signal.throwIfAborted();
    step += 1;
    await task.saveCheckpoint(step);
  }
  const { size } = await task.requestInput({ size: question("Which size?") });
  await task.progress("nearly there");
  return { steps: step, answer: JSON.stringify(size) };
}

// P15 and P27, engine part: an engine that goes away at any moment, here after any number of turns of the event loop.
test.each(Array.from({ length: 12 }, (_, turns) => turns))(
  "work whose engine goes away every %i turns ends with its result: one question, one answer, no attempt uncounted",
  async (turns) => {
    const store = new MemoryTaskStore();
    const creator = startEngine({ store });
    const { taskId } = await creator.lifecycle.createTask();
    await creator.lifecycle.close({ shutdownGraceMs: 0 });
    let attempts = 1;
    let acknowledged: string | undefined;
    // Each attempt gets a little further; a bound, so that one that does not cannot run for ever.
    while (attempts < 60) {
      const engine = startEngine({ store });
      const task = await engine.lifecycle.acquire(taskId);
      attempts += 1;
      expect(task.attempt).toBe(attempts);
      const running = engine.lifecycle.run(task, resumable);
      for (let turn = 0; turn < turns + attempts; turn += 1) {
        await nextTurn();
        const record = await store.get(taskId);
        if (record?.status !== "input_required") continue;
        expect(Object.keys(record.inputs ?? {}), "asked once").toEqual(["size"]);
        if (turn % 3 !== 0) continue;
        await engine.lifecycle.updateTask(taskId, { size: accepted({ attempts }) });
        acknowledged ??= JSON.stringify(accepted({ attempts }));
      }
      await engine.lifecycle.close({ shutdownGraceMs: 0 });
      await running;
      takeErrors(engine);
      const record = await store.get(taskId);
      if (record !== undefined && isTerminal(record.status)) break;
    }
    const last = startEngine({ store });
    expect(await last.lifecycle.getTask(taskId)).toMatchObject({
      status: "completed",
      result: { steps: 3, answer: acknowledged },
    });
    expect(await codeOf(last.lifecycle.acquire(taskId))).toBe("task_terminal");
    expect((await store.get(taskId))?.attempt).toBe(attempts);
  },
);
